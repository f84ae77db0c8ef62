package plugins_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coven-run/coven/plugins"
	"github.com/coven-run/coven/plugins/forge"
	"github.com/coven-run/coven/plugins/model"
	"github.com/coven-run/coven/plugins/pluginerr"
)

// unstartable lists plugins that cannot be started, and the expected errors.
var unstartable = []struct {
	beast string
	class error
	words []string
	hurry time.Duration // timeout of the start; 0 for the default
}{
	{"exits", pluginerr.ErrGone, []string{"exit code 3", `no licence found\x1b[31m`}, 0},
	{"garbage", pluginerr.ErrInvalid, []string{`printed "\x00\xff\x1b]0;title\a hello" instead of a handshake line`}, 0},
	{"spout", pluginerr.ErrInvalid, []string{`printed "xxxx`, `xxxx"... instead of a handshake line`}, 0},
	{"closer", pluginerr.ErrGone, []string{"not ready after 1s, killed"}, time.Second},
	{"mute", pluginerr.ErrGone, []string{"not ready after 1s, killed; no output"}, time.Second},
	{"ajar", pluginerr.ErrGone, []string{"not ready after 1s, killed"}, time.Second},
	{"plain", pluginerr.ErrGone, []string{"cannot connect", "tls"}, 0},
	{"core", pluginerr.ErrUnsupported, []string{"version 2 of go-plugin's handshake", "coven uses version 1", "build the plugin with"}, 0},
	{"newer", pluginerr.ErrUnsupported, []string{"uses version 99 of the contract, this coven supports 1", "update coven, or build the plugin for this coven"}, 0},
	{"netrpc", pluginerr.ErrUnsupported, []string{"does not use gRPC"}, 0},
	{"tcp", pluginerr.ErrInvalid, []string{`handshake names "tcp" address "127.0.0.1:`, "expected a socket in PLUGIN_UNIX_SOCKET_DIR"}, 0},
	{"elsewhere", pluginerr.ErrInvalid, []string{`handshake names "unix" address`, "expected a socket in PLUGIN_UNIX_SOCKET_DIR"}, 0},
	{"linked", pluginerr.ErrInvalid, []string{"is not a socket"}, 0},
	{"kindred", pluginerr.ErrUnsupported, []string{"does not serve coven.plugin.v1.Reviewer", "of another kind?"}, 0},
}

func TestUnstartable(t *testing.T) {
	for _, test := range unstartable {
		t.Run(test.beast, func(t *testing.T) {
			t.Parallel()
			c := newCage(t)
			defer c.accompany(t)()
			if test.hurry > 0 {
				c.host.Hurry(test.hurry, time.Minute, time.Minute)
			}
			for range 2 {
				_, err := c.ask(t, test.beast, titled(""), nil)
				says(t, err, test.class, append(test.words, "reviewer plugin "+test.beast+": start: ")...)
			}
			_, err := c.ask(t, test.beast, titled(""), nil)
			says(t, err, plugins.ErrCrashed, test.words...)
			for _, file := range []string{"elsewhere", "target"} { // coven does not remove the plugin's other files
				removeIn(t, c.sockets, file)
			}
		})
	}
}

// TestAnswers tests plugins that return invalid answers.
func TestAnswers(t *testing.T) {
	for _, test := range []struct {
		beast string
		class error
		words []string
	}{
		{"severity", pluginerr.ErrInvalid, []string{`finding 1: severity "catastrophic"`}},
		{"verdict", pluginerr.ErrInvalid, []string{`verdict "maybe"`}},
		{"absolute", pluginerr.ErrInvalid, []string{`finding 1: file "/etc/passwd" is not a path inside the worktree`}},
		{"dotdot", pluginerr.ErrInvalid, []string{`finding 1: file "a/../../b" is not a path inside the worktree`}},
		{"huge", pluginerr.ErrTooLarge, []string{"reviewer plugin huge: the answer has 104857", "the limit is 8388608"}},
	} {
		t.Run(test.beast, func(t *testing.T) {
			t.Parallel()
			c := newCage(t)
			defer c.accompany(t)()
			for range 3 { // it stays alive and answers again
				_, err := c.ask(t, test.beast, titled(""), nil)
				says(t, err, test.class, test.words...)
			}
		})
	}
}

// A change that is too large is not sent. The error gives the reason.
func TestLargeChange(t *testing.T) {
	t.Parallel()
	c := newCage(t)
	change := titled("large")
	change.Diff = strings.Repeat("+\n", 40<<20)
	_, err := c.ask(t, "well", change, nil)
	says(t, err, pluginerr.ErrTooLarge, "reviewer plugin well: the request has 838861", "the limit is 67108864")
	change.Diff = strings.Repeat("+\n", 25<<20)
	_, err = c.ask(t, "well", change, nil)
	must(t, err)
}

// TestForgeLiar tests a forge that lies, floods, hangs and exits. Each fails its call only.
func TestForgeLiar(t *testing.T) {
	t.Parallel()
	c := newCage(t)
	f, err := c.host.Forge(t.Context(), "liar")
	must(t, err)
	poll := func(number int) error {
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		if number == 4 { // it hangs
			cancel()
		}
		_, err := f.Poll(ctx, forge.Query{Known: []forge.Known{{Number: number}}})
		return err
	}
	for number, want := range map[int]struct {
		sentinel error
		word     string
	}{
		1: {pluginerr.ErrInvalid, `unknown state "fine"`},
		2: {pluginerr.ErrInvalid, "base \"--upload-pack"},
		3: {pluginerr.ErrTooLarge, "the limit is 33554432"},
		4: {context.Canceled, ""},
		5: {pluginerr.ErrGone, "I have had enough"},
		6: {pluginerr.ErrInvalid, "pull request 7, which was not asked for"},
		7: {pluginerr.ErrInvalid, "control characters"},
		8: {pluginerr.ErrInvalid, "path"},
	} {
		says(t, poll(number), want.sentinel, want.word)
		must(t, poll(9)) // it goes on
	}
	_, err = f.Log(t.Context(), forge.Repository{}, forge.Check{}, 100)
	says(t, err, pluginerr.ErrInvalid, "log of 101 bytes, the limit is 100")
	_, err = f.Merge(t.Context(), forge.Repository{}, forge.Merge{})
	says(t, err, pluginerr.ErrInvalid, `commit "main"`)
	_, err = f.Open(t.Context(), forge.Request{})
	says(t, err, pluginerr.ErrInvalid, "its number is not positive")
}

// TestDeaths tests plugins that exit or are killed during a call.
func TestDeaths(t *testing.T) {
	for _, test := range []struct {
		beast, title string
		words        []string
	}{
		{"quits", "quit", []string{"exit code 7", "I have had enough"}},
		{"panics", "", []string{"exit code 2", "panic: the beast panics", "review.go"}},
		{"hermit", "", []string{"closed the connection, killed"}},
		{"frozen", "freeze", []string{"hung: 3 health checks without an answer within 1s, killed"}},
	} {
		t.Run(test.beast, func(t *testing.T) {
			t.Parallel()
			c := newCage(t)
			defer c.accompany(t)()
			if test.beast == "frozen" {
				c.host.Hurry(limit, 100*time.Millisecond, time.Second)
			}
			for range 2 { // it is restarted after the first crash
				_, err := c.ask(t, test.beast, titled(test.title), nil)
				says(t, err, pluginerr.ErrGone, append(test.words, "reviewer plugin "+test.beast+": ")...)
			}
			_, err := c.ask(t, test.beast, titled("well"), nil)
			says(t, err, plugins.ErrCrashed, test.words...)
		})
	}
}

// A plugin that crashed once is restarted by the next call, also for existing clients.
func TestAgain(t *testing.T) {
	t.Parallel()
	c := newCage(t)
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	r, err := c.host.Reviewer(ctx, "quits")
	must(t, err)
	_, err = r.Review(ctx, titled("quit"), nil)
	says(t, err, pluginerr.ErrGone)
	for _, title := range []string{"a", "b"} {
		got, err := r.Review(ctx, titled(title), nil)
		if err != nil || got.Summary != title {
			t.Errorf("%+v, %v", got, err)
		}
	}
}

// An answered call between two crashes resets the count of crashes.
func TestPardon(t *testing.T) {
	t.Parallel()
	c := newCage(t)
	ask := func(title string) error {
		_, err := c.ask(t, "quits", titled(title), nil)
		return err
	}
	for range 3 {
		says(t, ask("quit"), pluginerr.ErrGone, "exit code 7")
		must(t, ask("well"))
	}
	says(t, ask("quit"), pluginerr.ErrGone)
	says(t, ask("quit"), pluginerr.ErrGone)
	says(t, ask("well"), plugins.ErrCrashed)
	m, err := c.host.Model(t.Context(), "quits")
	must(t, err)
	for range 3 {
		for _, name := range []string{"quit", "go on"} {
			err := m.Turn(t.Context(), model.Request{Model: name}, func(model.Event) error { return nil })
			if errors.Is(err, pluginerr.ErrGone) != (name == "quit") || errors.Is(err, plugins.ErrCrashed) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// A crash during a stream is reported like any other crash.
func TestDeathInStream(t *testing.T) {
	t.Parallel()
	c := newCage(t)
	m, err := c.host.Model(t.Context(), "quits")
	must(t, err)
	for _, name := range []string{"go on", "quit", "go on"} {
		said := ""
		err := m.Turn(t.Context(), model.Request{Model: name}, func(e model.Event) error {
			if text, ok := e.(model.Text); ok {
				said += text.Text
			}
			return nil
		})
		if name == "quit" {
			says(t, err, pluginerr.ErrGone, "model plugin quits: ", "exit code 7")
		} else if err != nil || said != "I was about to" {
			t.Errorf("%q, %v", said, err)
		}
	}
}

// An idle plugin that never answers health checks is killed.
func TestSick(t *testing.T) {
	t.Parallel()
	c := newCage(t)
	defer c.accompany(t)()
	c.host.Hurry(limit, 100*time.Millisecond, time.Second)
	var err error
	eventually(t, "it is given up", func() bool {
		if _, err = c.host.Reviewer(t.Context(), "sick"); err != nil && !errors.Is(err, pluginerr.ErrGone) {
			t.Error(err)
		}
		return errors.Is(err, plugins.ErrCrashed)
	})
	says(t, err, plugins.ErrCrashed, "hung: 3 health checks")
}

// A busy plugin is not killed, even if it does not answer health checks.
func TestBusy(t *testing.T) {
	t.Parallel()
	c := newCage(t)
	c.host.Hurry(limit, 100*time.Millisecond, 2*time.Second)
	_, err := c.ask(t, "busy", titled(""), nil)
	must(t, err)
}

// A call returns at its deadline, and the plugin accepts further calls.
func TestDeadline(t *testing.T) {
	for _, beast := range []string{"never", "late"} {
		t.Run(beast, func(t *testing.T) {
			t.Parallel()
			c := newCage(t)
			defer c.accompany(t)()
			r, err := c.host.Reviewer(t.Context(), beast)
			must(t, err)
			for range 3 {
				ctx, cancel := context.WithTimeoutCause(t.Context(), 200*time.Millisecond, errTime)
				begun := time.Now()
				_, err = r.Review(ctx, titled("late"), nil)
				cancel()
				says(t, err, errTime)
				if took := time.Since(begun); took > limit/2 {
					t.Errorf("it took %s", took)
				}
			}
			if beast == "late" {
				got, err := c.ask(t, beast, titled("now"), nil)
				if err != nil || got.Summary != "now" {
					t.Errorf("%+v, %v", got, err)
				}
			}
		})
	}
}

// Output of a plugin does not block it, and is not stored without limit.
func TestFloods(t *testing.T) {
	for _, beast := range []string{"chatter", "talker"} {
		t.Run(beast, func(t *testing.T) { // not parallel, because it measures memory
			c := newCage(t)
			defer c.accompany(t)()
			before := lowerPeak(t)
			got, err := c.ask(t, beast, titled("said"), nil)
			if err != nil || got.Summary != "said" {
				t.Errorf("%+v, %v", got, err)
			}
			if most := peak(t) - before; most > 128<<20 {
				t.Errorf("this process has grown by %d MiB", most>>20)
			}
		})
	}
}

// Close kills plugins that ignore the request to exit, and the processes that they leave behind. The
// cleanup of newCage checks this.
func TestLeftovers(t *testing.T) {
	for _, beast := range []string{"stubborn", "leaver"} {
		t.Run(beast, func(t *testing.T) {
			t.Parallel()
			c := newCage(t)
			defer c.accompany(t)()
			_, err := c.ask(t, beast, titled(""), nil)
			must(t, err)
			if beast == "leaver" {
				eventually(t, "its grandchild lives", func() bool { return c.lives("grandchild") })
			}
		})
	}
}

// The descendants of a crashed plugin are killed.
func TestOrphans(t *testing.T) {
	t.Parallel()
	c := newCage(t)
	_, err := c.ask(t, "leaver", titled(""), nil)
	must(t, err)
	eventually(t, "its grandchild lives", func() bool { return c.lives("grandchild") })
	must(t, syscall.Kill(c.pid(t, "coven-reviewer-leaver"), syscall.SIGKILL))
	eventually(t, "nothing of it lives", func() bool { return !c.lives("leaver") })
}

// Only the trusted program of a plugin is run.
func TestChecksum(t *testing.T) {
	t.Parallel()
	c := newCage(t)
	c.sum = make([]byte, 32)
	for range 3 { // not counted as a crash: each call checks it again
		_, err := c.ask(t, "well", titled(""), nil)
		says(t, err, plugins.ErrChecksum, "reviewer plugin well", "has SHA-256 ", "expected "+strings.Repeat("0", 64))
	}
	if c.lives("well") {
		t.Error("it was run")
	}
	c.sum = zooSum(t)
	_, err := c.ask(t, "well", titled(""), nil)
	must(t, err)
}

// A plugin gets neither coven's environment nor its standard input.
func TestEnvironment(t *testing.T) {
	t.Setenv("COVEN_TEST_SECRET", "s3cr3t")
	stdin, typed, err := os.Pipe()
	must(t, err)
	before := os.Stdin
	os.Stdin = stdin
	defer func() { os.Stdin = before; _, _ = stdin.Close(), typed.Close() }()
	c := newCage(t)
	got, err := c.ask(t, "environment", titled(""), nil)
	must(t, err)
	if where, err := filepath.EvalSymlinks(c.sockets); err != nil || !strings.Contains(got.Summary, "DIR="+where+"\n") {
		t.Errorf("it does not start in %s: %v\n%s", where, err, got.Summary)
	}
	if strings.Contains(got.Summary, "s3cr3t") || !strings.Contains(got.Summary, "LANG=C.UTF-8") {
		t.Errorf("its environment:\n%s", got.Summary)
	}
	known := []string{"STDIN=/dev/null\n", "DIR=", "PATH=", "LANG=", "COVEN_PLUGIN=", "PLUGIN_"}
	certificate := false
	for line := range strings.Lines(got.Summary) {
		fits := certificate
		for _, prefix := range known {
			fits = fits || strings.HasPrefix(line, prefix)
		}
		certificate = (certificate || strings.HasPrefix(line, "PLUGIN_CLIENT_CERT=")) && line != "\n"
		if !fits {
			t.Errorf("its environment has %q", line)
		}
	}
}

// Both sides use the highest version that both support.
func TestNegotiation(t *testing.T) {
	for _, test := range []struct {
		beast  string
		speaks []int
		want   string
	}{
		{"old", []int{1}, "version 1"},
		{"old", []int{1, 2}, "version 1"},
		{"new", []int{1}, "version 1"},
		{"new", []int{1, 2}, "version 2"},
		{"new", []int{2}, "version 2"},
		{"new", []int{2, 3}, "version 2"},
	} {
		c := newCage(t)
		c.host.Speak(test.speaks...)
		got, err := c.ask(t, test.beast, titled(""), nil)
		if err != nil || got.Summary != test.want {
			t.Errorf("%s, coven speaks %v: %+v, %v", test.beast, test.speaks, got, err)
		}
	}
	c := newCage(t)
	c.host.Speak(2, 3)
	_, err := c.ask(t, "old", titled(""), nil)
	says(t, err, pluginerr.ErrUnsupported, "uses version 1 of the contract, this coven supports 2, 3: update the plugin")
}

func TestUnknown(t *testing.T) {
	t.Parallel()
	c := newCage(t)
	for range 3 {
		_, err := c.host.Reviewer(t.Context(), "nobody")
		says(t, err, plugins.ErrUnknown, "reviewer plugin nobody: unknown plugin")
		_, err = c.host.Provider(t.Context(), "well")
		says(t, err, plugins.ErrUnknown)
	}
}
