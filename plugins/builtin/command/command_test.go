package command_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coven-run/coven/plugins/builtin/command"
	"github.com/coven-run/coven/plugins/hostservice"
	"github.com/coven-run/coven/plugins/pluginerr"
	"github.com/coven-run/coven/plugins/reviewer"
)

// host records the log.
type host struct {
	hostservice.Services
	logged []string
}

func (h *host) Log(_ context.Context, text string) error {
	h.logged = append(h.logged, text)
	return errors.New("the log is full") // which must not fail the review
}

// worktree creates a directory with a few files.
func worktree(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"a.go", "b.go", "with space.go", "dir/c.go", "12", "über.go"} {
		file := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte("x\n"), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// review runs a command in a worktree with a change of all files except b.go.
func review(t *testing.T, dir, shell string, options ...string) (reviewer.Review, error) {
	t.Helper()
	change := reviewer.Change{Dir: dir, Options: map[string]string{"command": shell}}
	for _, name := range []string{"a.go", "with space.go", "dir/c.go", "12", "über.go"} {
		change.Files = append(change.Files, reviewer.File{Path: name, Status: "M"})
	}
	for i := 0; i < len(options); i += 2 {
		change.Options[options[i]] = options[i+1]
	}
	r, err := command.Reviewer{}.Review(t.Context(), change, &host{})
	if err == nil {
		if wrong := r.Check(); wrong != nil {
			t.Errorf("%q: the contract does not take it: %v", shell, wrong)
		}
	}
	return r, err
}

// short formats a review as lines.
func short(r reviewer.Review) string {
	lines := []string{string(r.Verdict)}
	for _, f := range r.Findings {
		line := fmt.Sprintf("%s|%s|%s", f.Severity, f.Where(), f.Message)
		if f.Suggestion != "" {
			line += "|" + f.Suggestion
		}
		lines = append(lines, line)
	}
	if r.Summary != "" {
		lines = append(lines, r.Summary)
	}
	return strings.Join(append(lines, r.Suggestions...), "\n")
}

func TestLines(t *testing.T) {
	dir := worktree(t)
	for name, test := range map[string]struct {
		output  string
		options []string
		want    string
	}{
		"nothing":                   {"", nil, "pass"},
		"file, line":                {"a.go:3: wrong", nil, "fail\nerror|a.go:3|wrong"},
		"and column":                {"a.go:3:7: wrong", nil, "fail\nerror|a.go:3|wrong"},
		"from here":                 {"./a.go:3: wrong", nil, "fail\nerror|a.go:3|wrong"},
		"absolute":                  {dir + "/dir/c.go:3: wrong", nil, "fail\nerror|dir/c.go:3|wrong"},
		"of a compiler":             {"a.go:3:1: warning: odd [-Wodd]\na.go:4:1: Error: bad\na.go:5:1: note: see", nil, "fail\nwarning|a.go:3|odd [-Wodd]\nerror|a.go:4|bad\ninfo|a.go:5|see"},
		"only warnings":             {"a.go:3: warning: odd", nil, "pass\nwarning|a.go:3|odd"},
		"of another severity":       {"a.go:3: odd\na.go:4: error: bad", []string{"severity", "info"}, "fail\ninfo|a.go:3|odd\nerror|a.go:4|bad"},
		"with a space":              {"with space.go:3: wrong", nil, "fail\nerror|with space.go:3|wrong"},
		"not ASCII":                 {"über.go:3: wörong", nil, "fail\nerror|über.go:3|wörong"},
		"with CRLF":                 {"a.go:3: wrong\r", nil, "fail\nerror|a.go:3|wrong"},
		"no such file":              {"gone.go:3: wrong\nhttp://localhost:80: refused\n10:30: lunch", nil, "pass"},
		"a time of day that is one": {"12:30: lunch", nil, "fail\nerror|12:30|lunch"},
		"other lines":               {"# package\nFAIL a.go\na.go: no line\n\ta.go:3: indented", nil, "pass"},
		"a line that is too large":  {"a.go:99999999999999999999: wrong", nil, "pass"},
		"line 0":                    {"a.go:0: wrong", nil, "fail\nerror|a.go|wrong"},
		"not touched":               {"b.go:3: wrong\na.go:3: wrong", nil, "fail\nerror|a.go:3|wrong\n1 more in unchanged files"},
		"all files":                 {"b.go:3: wrong", []string{"scope", "all"}, "fail\nerror|b.go:3|wrong"},
		"only in files not touched": {"b.go:3: wrong", nil, "pass\n1 more in unchanged files"},
		"outside":                   {"/etc/passwd:3: wrong", nil, "fail\nerror||/etc/passwd:3: wrong"},
		"outside, relative":         {"../" + filepath.Base(dir) + "/a.go:3: wrong", []string{"scope", "all"}, "fail\nerror||../" + filepath.Base(dir) + "/a.go:3: wrong"},
	} {
		r, err := review(t, dir, "cat <<'END'\n"+test.output+"\nEND", test.options...)
		if err != nil || short(r) != test.want {
			t.Errorf("%s: got\n%s\n%v, want\n%s", name, short(r), err, test.want)
		}
	}
	if r, err := review(t, dir, "echo 'a.go:3: wrong' >&2; exit 1"); err != nil || short(r) != "fail\nerror|a.go:3|wrong" {
		t.Errorf("on standard error: %s, %v", short(r), err)
	}
	if r, err := review(t, dir, `printf 'a.go:3: \377\376 wrong\n'; exit 1`); err != nil || short(r) != "fail\nerror|a.go:3|\uFFFD wrong" {
		t.Errorf("not UTF-8: %q, %v", short(r), err)
	}
	if r, err := review(t, dir, "printf 'a.go:3: '; head -c 100000 /dev/zero | tr '\\0' x"); err != nil || len(r.Findings) != 1 ||
		len(r.Findings[0].Message) != reviewer.MaxText || !strings.HasSuffix(r.Findings[0].Message, "x...") {
		t.Errorf("a long line: %d, %v", len(short(r)), err)
	}
}

// If there are more findings than the contract allows, the most severe ones remain.
func TestMany(t *testing.T) {
	r, err := review(t, worktree(t), "seq -f 'a.go:%.0f: warning: odd' 1200; seq -f 'a.go:%.0f: bad' 10; exit 1")
	if err != nil || r.Verdict != reviewer.Fail || len(r.Findings) != reviewer.MaxFindings || !slices.Equal(r.Suggestions, []string{"210 less severe findings omitted"}) {
		t.Fatalf("%d findings, %q, %v", len(r.Findings), r.Suggestions, err)
	}
	for i, f := range r.Findings {
		if (f.Severity == reviewer.Error) != (i < 10) {
			t.Fatalf("finding %d is %+v", i, f)
		}
	}
}

func TestExits(t *testing.T) {
	dir := worktree(t)
	for shell, want := range map[string]string{
		"exit 3":                  `"exit 3" failed with exit code 3 and no finding: (no output)`,
		"echo no licence; exit 2": `and no finding: no licence`,
		"nosuchcommand":           `failed with exit code 127 and no finding: `,
		"kill -9 $$":              `signal: killed`,
		"kill -TERM $$":           `signal: terminated`,
	} {
		if _, err := review(t, dir, shell); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", shell, err)
		}
	}
	const counts = "\nexit code 1 without an error in changed files: errors in other files count"
	for shell, want := range map[string]string{
		"echo 'b.go:1: wrong'; exit 1":                              "fail\nerror|b.go:1|wrong" + counts,
		"echo 'a.go:1: warning: odd'; echo 'b.go:1: wrong'; exit 1": "fail\nwarning|a.go:1|odd\nerror|b.go:1|wrong" + counts,
		"echo 'b.go:1: warning: odd'; exit 1":                       "pass\nwarning|b.go:1|odd" + counts,
		"echo 'b.go:1: wrong'; echo 'a.go:1: wrong'; exit 1":        "fail\nerror|a.go:1|wrong\n1 more in unchanged files",
		"(echo 'b.go:1: wrong'; exit 1) || true":                    "pass\n1 more in unchanged files",
		"echo 'a.go:1: warning: odd'; exit 1":                       "pass\nwarning|a.go:1|odd",
	} {
		if r, err := review(t, dir, shell); err != nil || short(r) != want {
			t.Errorf("%q: got\n%s\n%v, want\n%s", shell, short(r), err, want)
		}
	}
	if r, err := review(t, dir, "pwd"); err != nil || r.Verdict != reviewer.Pass {
		t.Errorf("%+v, %v", r, err)
	}
	change := reviewer.Change{Dir: filepath.Join(dir, "gone"), Options: map[string]string{"command": "true"}}
	if _, err := (command.Reviewer{}).Review(t.Context(), change, &host{}); err == nil || !strings.Contains(err.Error(), `run "true"`) {
		t.Errorf("nowhere: %v", err)
	}
}

func TestOptions(t *testing.T) {
	for _, test := range []struct {
		options []string
		want    string
	}{
		{[]string{"command", " "}, "with.command is required"},
		{[]string{"format", "xml"}, `with.format "xml" is neither lines nor sarif`},
		{[]string{"severity", "fatal"}, `with.severity "fatal" is not one of error, warning, info`},
		{[]string{"scope", "some"}, `with.scope "some" is neither changed nor all`},
		{[]string{"comand", "x"}, `with.comand is not one of command, format, severity, scope`},
	} {
		if _, err := review(t, t.TempDir(), "true", test.options...); !errors.Is(err, pluginerr.ErrInvalid) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%q: %v", test.options, err)
		}
	}
}

// The log contains the command, the end of its output and its exit.
func TestLog(t *testing.T) {
	h := &host{}
	change := reviewer.Change{Dir: t.TempDir(), Options: map[string]string{"command": "seq 10000; echo end"}}
	if _, err := (command.Reviewer{}).Review(t.Context(), change, h); err != nil || len(h.logged) != 1 {
		t.Fatalf("%v, %q", err, h.logged)
	}
	if got := h.logged[0]; !strings.HasPrefix(got, "$ seq 10000; echo end\n") || !strings.HasSuffix(got, "10000\nend\nexit code 0") || len(got) > 3000 {
		t.Errorf("logged %q", got)
	}
}

// After the timeout the command and all its descendants are killed.
func TestCancelled(t *testing.T) {
	for _, start := range []string{"", "setsid "} {
		dir := t.TempDir()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		change := reviewer.Change{Dir: dir, Options: map[string]string{
			"command": "trap '' TERM; (trap '' TERM; " + start + "sh -c 'echo $$ > child; exec sleep 1000') & wait",
		}}
		done := make(chan error, 1)
		go func() {
			_, err := command.Reviewer{}.Review(ctx, change, &host{})
			done <- err
		}()
		pid := 0
		eventually(t, "the child runs", func() bool {
			text, err := os.ReadFile(filepath.Join(dir, "child"))
			_, scan := fmt.Sscan(string(text), &pid)
			return err == nil && scan == nil
		})
		cancel()
		select {
		case err := <-done:
			if !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		case <-time.After(time.Minute):
			t.Fatal("it goes on")
		}
		eventually(t, "the child is gone", func() bool { return gone(pid) })
	}
}

// gone reports whether a process has exited, even if it is a zombie.
func gone(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return true
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || strings.Contains(string(stat), ") Z ")
}

func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for deadline := time.Now().Add(time.Minute); !done(); <-ticker.C {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
	}
}

// A child that holds the output open does not delay the command for long. It is killed with the command, in
// any process group and session. The same holds for a child without the output.
func TestLeftBehind(t *testing.T) {
	for name, child := range map[string]string{
		"in its group":         "sh -c 'echo $$ > child; exec sleep 1000' &",
		"in one of its own":    "setsid sh -c 'echo $$ > child; exec sleep 1000' &",
		"an orphan":            "(setsid sh -c 'echo $$ > child; exec sleep 1000' >/dev/null 2>&1 &) &",
		"that starts another":  "setsid sh -c 'echo $$ > child; while :; do sleep 0.01; done' >/dev/null 2>&1 &",
		"deaf to all but KILL": "setsid sh -c 'trap \"\" TERM HUP INT; echo $$ > child; sleep 1000; sleep 1000' &",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := worktree(t)
			begun := time.Now()
			r, err := review(t, dir, child+"\nuntil test -s child; do sleep 0.01; done; echo 'a.go:1: wrong'; exit 1")
			if err != nil || short(r) != "fail\nerror|a.go:1|wrong" || time.Since(begun) > time.Minute {
				t.Errorf("%s, %v after %s", short(r), err, time.Since(begun))
			}
			pid := 0
			text, err := os.ReadFile(filepath.Join(dir, "child"))
			if _, scan := fmt.Sscan(string(text), &pid); err != nil || scan != nil {
				t.Fatalf("%q, %v, %v", text, err, scan)
			}
			eventually(t, "the child is gone", func() bool { return gone(pid) })
		})
	}
}

// The remaining processes of one review are killed, but not those of another.
func TestLeftOfAnother(t *testing.T) {
	dir := worktree(t)
	done := make(chan error, 1)
	go func() {
		r, err := review(t, dir, "setsid sh -c 'touch up; until test -e enough; do sleep 0.01; done; echo a.go:1: wrong'")
		if err == nil && short(r) != "fail\nerror|a.go:1|wrong" {
			err = errors.New(short(r))
		}
		done <- err
	}()
	eventually(t, "the other one runs", func() bool { _, err := os.Stat(filepath.Join(dir, "up")); return err == nil })
	if r, err := review(t, worktree(t), "setsid sleep 1000 & exit 0"); err != nil || short(r) != "pass" {
		t.Errorf("%s, %v", short(r), err)
	}
	if err := os.WriteFile(filepath.Join(dir, "enough"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// Only the beginning of endless output counts, and the command is not blocked.
func TestFlood(t *testing.T) {
	r, err := review(t, worktree(t), "echo 'a.go:1: wrong'; head -c 100000000 /dev/zero; echo; echo 'a.go:2: late'; exit 1")
	if err != nil || short(r) != "fail\nerror|a.go:1|wrong" {
		t.Errorf("%d bytes, %v", len(short(r)), err)
	}
}
