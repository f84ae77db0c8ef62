package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coven-run/coven/internal/fake/fakeapi"
)

// These benchmarks measure the delay between a line of the model and the screen: the time from its release
// by the model API to its arrival on coven's standard output (K-02 requires 200 ms). The floor is the agent
// CLI's own standard output without coven. The agent CLI is the fake one.

func BenchmarkLineOnScreen(b *testing.B) {
	d := newDelay(b, b.N)
	cmd := exec.CommandContext(b.Context(), "coven", "run", "-p", "Talk", "--auto-approve", "--grimoire", "none")
	d.measure(b, cmd, nil)
}

// BenchmarkLineOnScreenFloor is the floor of BenchmarkLineOnScreen.
func BenchmarkLineOnScreenFloor(b *testing.B) {
	d := newDelay(b, b.N)
	cmd := exec.CommandContext(b.Context(), "claude", "-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose")
	d.measure(b, cmd, strings.NewReader(`{"type":"user","message":{"role":"user","content":[{"type":"text","text":"Talk"}]}}`+"\n"))
}

// delay is a model that sends a line on request.
type delay struct {
	api *fakeapi.Server
	dir string
	env []string
}

func newDelay(b testing.TB, lines int) *delay {
	b.Helper()
	d := &delay{dir: b.TempDir()}
	repo := filepath.Join(d.dir, "repo")
	var chunks []fakeapi.Chunk
	for i := range lines {
		chunks = append(chunks, fakeapi.Chunk{Text: fmt.Sprintf("line %d.", i), Hold: fmt.Sprint(i)})
	}
	api, err := fakeapi.New(fakeapi.Scenario{Conversations: []fakeapi.Conversation{{Turns: []fakeapi.Turn{{Chunks: chunks}}}}})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = api.Close() })
	d.api = api
	d.env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + d.dir, "GIT_CONFIG_GLOBAL=" + os.DevNull, "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=T", "GIT_AUTHOR_EMAIL=t@example.invalid", "GIT_COMMITTER_NAME=T", "GIT_COMMITTER_EMAIL=t@example.invalid",
		"ANTHROPIC_BASE_URL=" + api.URL, "ANTHROPIC_API_KEY=dummy",
	}
	for _, args := range [][]string{{"init", "-q", repo}, {"-C", repo, "commit", "-q", "--allow-empty", "-m", "first"}} {
		cmd := exec.CommandContext(b.Context(), "git", args...)
		cmd.Env = d.env
		if out, err := cmd.CombinedOutput(); err != nil {
			b.Fatalf("git: %v\n%s", err, out)
		}
	}
	d.dir = repo
	return d
}

// measure times lines, one after the other.
func (d *delay) measure(b *testing.B, cmd *exec.Cmd, in io.Reader) {
	b.Helper()
	b.ResetTimer()
	var all time.Duration
	for _, took := range d.lines(b, cmd, in, b.N) {
		all += took
	}
	b.StopTimer()
	b.ReportMetric(float64(all.Nanoseconds())/float64(b.N), "ns/op")
}

// lines releases one line after the other, and returns the delay of each.
func (d *delay) lines(b testing.TB, cmd *exec.Cmd, in io.Reader, n int) []time.Duration {
	b.Helper()
	cmd.Dir, cmd.Env, cmd.Stdin, cmd.Stderr = d.dir, d.env, in, os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(b.Context(), patience)
	defer cancel()
	lines := bufio.NewReader(out)
	var took []time.Duration
	for i := range n {
		if err := d.api.WaitHeld(ctx, fmt.Sprint(i)); err != nil {
			b.Fatal(err)
		}
		start := time.Now()
		d.api.Release(fmt.Sprint(i))
		for want := fmt.Sprintf("line %d.", i); ; {
			line, err := lines.ReadString('\n')
			if err != nil {
				b.Fatalf("after %s: %v", time.Since(start), err)
			}
			if strings.Contains(line, want) {
				break
			}
		}
		took = append(took, time.Since(start))
	}
	if _, err := io.Copy(io.Discard, lines); err != nil {
		b.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		b.Fatal(err)
	}
	return took
}
