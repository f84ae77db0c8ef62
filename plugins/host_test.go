package plugins_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coven-run/coven/plugins"
	"github.com/coven-run/coven/plugins/pluginerr"
)

var errTime = errors.New("the time is up")

// eventually polls until the condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(limit); time.Now().Before(end); {
		if holds() {
			return
		}
		<-time.After(10 * time.Millisecond)
	}
	t.Fatal("never: " + what)
}

// lives reports whether a process of the cage has the word in its command line.
func (c *cage) lives(word string) bool {
	for _, line := range c.living() {
		if strings.Contains(line, word) {
			return true
		}
	}
	return false
}

// pid returns the ID of the process of the cage that runs the program.
func (c *cage) pid(t testing.TB, program string) int {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	must(t, err)
	for _, file := range files {
		line, err := os.ReadFile(file)
		if err == nil && string(line) == filepath.Join(c.dir, program)+"\x00" {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			must(t, err)
			return pid
		}
	}
	t.Fatalf("no %s runs", program)
	return 0
}

func removeIn(t *testing.T, dir, file string) {
	t.Helper()
	if err := os.Remove(filepath.Join(dir, file)); err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

func zooSum(t *testing.T) []byte {
	t.Helper()
	zoo, err := zooOnce()
	must(t, err)
	program, err := os.ReadFile(zoo)
	must(t, err)
	sum := sha256.Sum256(program)
	return sum[:]
}

// lowerPeak resets peak and returns the current value.
func lowerPeak(t *testing.T) int {
	t.Helper()
	debug.FreeOSMemory()
	must(t, os.WriteFile("/proc/self/clear_refs", []byte("5"), 0))
	return peak(t)
}

// peak returns the maximum memory use of this process, in bytes.
func peak(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile("/proc/self/status")
	must(t, err)
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib := 0
			_, err := fmt.Sscan(rest, &kib)
			must(t, err)
			return kib << 10
		}
	}
	t.Fatal("no VmHWM")
	return 0
}

// If many tasks need the same plugins at once, each plugin is started once.
func TestShared(t *testing.T) {
	t.Parallel()
	c := newCage(t)
	must(t, c.host.Warm(t.Context(), plugins.Need{Kind: plugins.KindReviewer, Name: "well"}, plugins.Need{Kind: plugins.KindReviewer, Name: "quits"}))
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			title := strconv.Itoa(i)
			for _, name := range []string{"well", "quits"} {
				if got, err := c.ask(t, name, titled(title), nil); err != nil || got.Summary != title {
					t.Errorf("%+v, %v", got, err)
				}
			}
		})
	}
	all.Wait()
	for _, name := range []string{"well", "quits"} {
		n := 0
		for _, line := range c.living() {
			if line == filepath.Join(c.dir, "coven-reviewer-"+name)+"\x00" {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%d processes of %s: %q", n, name, c.living())
		}
	}
}

// If many tasks need a plugin that fails to start, it is started twice in total.
func TestGivenUp(t *testing.T) {
	t.Parallel()
	c := newCage(t)
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			for {
				_, err := c.ask(t, "exits", titled(""), nil)
				if !errors.Is(err, pluginerr.ErrGone) {
					t.Errorf("%v", err)
				}
				if err == nil || errors.Is(err, plugins.ErrCrashed) {
					return
				}
			}
		})
	}
	all.Wait()
	if n := c.starts.Load(); n != 2 {
		t.Errorf("it was started %d times", n)
	}
}

// Warm returns the error of each plugin that failed.
func TestWarm(t *testing.T) {
	t.Parallel()
	c := newCage(t)
	err := c.host.Warm(t.Context(),
		plugins.Need{Kind: plugins.KindReviewer, Name: "exits"}, plugins.Need{Kind: plugins.KindReviewer, Name: "well"},
		plugins.Need{Kind: plugins.KindArbiter, Name: "nobody"})
	says(t, err, pluginerr.ErrGone, "reviewer plugin exits", "arbiter plugin nobody")
	says(t, err, plugins.ErrUnknown)
}

// Waiting for a start ends with the context; the start continues for other callers,
// and Close ends it.
func TestWaiting(t *testing.T) {
	t.Parallel()
	c := newCage(t)
	stop := c.accompany(t)
	ctx, cancel := context.WithTimeoutCause(t.Context(), 300*time.Millisecond, errTime)
	defer cancel()
	_, err := c.host.Reviewer(ctx, "mute")
	says(t, err, errTime)
	other := make(chan error, 1)
	go func() {
		_, err := c.host.Reviewer(context.WithoutCancel(t.Context()), "mute")
		other <- err
	}()
	eventually(t, "the mute one runs", func() bool { return c.lives("mute") })
	stop()
	begun := time.Now()
	c.host.Close()
	says(t, <-other, plugins.ErrClosed)
	if took := time.Since(begun); took > 20*time.Second { // the start alone takes longer
		t.Errorf("closing during a start took %s", took)
	}
}

// After Close every use fails, and pending calls fail.
func TestClosed(t *testing.T) {
	t.Parallel()
	c := newCage(t)
	r, err := c.host.Reviewer(t.Context(), "never")
	must(t, err)
	called := make(chan error, 1)
	go func() {
		_, err := r.Review(context.WithoutCancel(t.Context()), titled(""), nil)
		called <- err
	}()
	var all sync.WaitGroup
	for range 3 {
		all.Go(c.host.Close)
	}
	all.Wait()
	says(t, <-called, plugins.ErrClosed)
	_, err = r.Review(t.Context(), titled(""), nil)
	says(t, err, plugins.ErrClosed, "reviewer plugin never")
	_, err = c.host.Reviewer(t.Context(), "well")
	says(t, err, plugins.ErrClosed)
	plugins.NewHost(plugins.HostOptions{}).Close()
}
