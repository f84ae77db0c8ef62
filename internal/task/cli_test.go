package task

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coven-run/coven/internal/fake/fakebd"
)

// captured contains recorded answers and errors of the real bd.
const captured = "../fake/fakebd/testdata/captures"

func recorded(t *testing.T, name, ext string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(captured, name+ext))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// Every recorded answer with issues can be parsed, with and without its envelope.
func TestAnswersOfBd(t *testing.T) {
	for name, want := range map[string]string{
		"02-ready-empty": "", "03-create": "gg-rls open", "04-create-full": "gg-9m1 open", "06-ready": "gg-rls open",
		"07-list-all": "gg-9m1 open, gg-rls open", "08-show": "gg-9m1 open", "10-claim": "gg-rls in_progress w1",
		"16-close": "gg-rls closed w1", "18-ready-claim": "gg-9m1 in_progress w3", "19-ready-claim-none": "", "23-reopen": "gg-rls open w1",
		"28-envelope-list": "gg-9m1 in_progress w3, gg-rls open w1",
	} {
		for form, answer := range map[string][]byte{
			"as it is":    recorded(t, name, ".out"),
			"in envelope": []byte(`{"schema_version":2,"data":` + string(recorded(t, name, ".out")) + `}`),
		} {
			if strings.HasPrefix(name, "28") && form != "as it is" {
				continue
			}
			all, near, err := (&output{stdout: answer}).issues()
			if err != nil {
				t.Fatalf("%s %s: %v", name, form, err)
			}
			var got []string
			for _, one := range all {
				got = append(got, strings.TrimSpace(one.ID+" "+one.Status+" "+one.Assignee))
			}
			if strings.Join(got, ", ") != want {
				t.Errorf("%s %s: %v, want %s", name, form, got, want)
			}
			if is := name == "08-show"; is != (len(near) == 1 && near[0].ID == "gg-rls" && near[0].Status == StatusOpen) {
				t.Errorf("%s %s: near are %v", name, form, near)
			}
		}
	}
}

// Every recorded error is reported with bd's text.
func TestComplaintsOfBd(t *testing.T) {
	for name, want := range map[string]string{
		"00-no-db-list":            "no beads database found",
		"09-show-missing":          "no issues found matching the provided IDs",
		"12-claim-other":           "Error claiming gg-rls: issue already claimed by w1",
		"13-bad-status":            `invalid status "bogus" (built-in: open, in_progress, blocked, deferred, closed, pinned, hooked; or configure custom statuses via 'bd config set status.custom')`,
		"14-update-missing":        `Error resolving gg-none: no issue found matching "gg-none"`,
		"15-close-blocked":         "cannot close gg-9m1: blocked by open issues [gg-rls] (use --force to override)",
		"17-claim-closed":          "Error claiming gg-rls: issue already claimed by w1",
		"21-unknown-flag":          "unknown flag: --nosuch",
		"22-cycle":                 "adding dependency would create a cycle",
		"29-envelope-show-missing": "no issues found matching the provided IDs",
		"30-create-bad-type":       "validation failed for issue : invalid issue type: nosuch",
		"31-close-missing":         `resolving ID gg-none: no issue found matching "gg-none"`,
	} {
		if got := complaint(recorded(t, name, ".out"), recorded(t, name, ".err")); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	for text, want := range map[string]string{
		`{"error":{"code":"ISSUE_NOT_FOUND","message":"Issue not found: x","hint":"h","retryable":false}}`: "Issue not found: x (ISSUE_NOT_FOUND)",
		"Warning: 0755\n{\n  \"error\": \"late\"\n}\n":                                                     "late",
		"warning: one\nsomething else\n":                                                                   "something else",
		"warning: alone\n":                                                                                 "warning: alone",
		"":                                                                                                 "",
	} {
		if got := complaint(nil, []byte(text)); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// Failures of the program are reported with the command and a next step.
func TestFaults(t *testing.T) {
	for fault, test := range map[string]struct {
		call func(*CLI, string) error
		says []string
	}{
		"fail-stdout@ready":   {func(c *CLI, _ string) error { _, err := c.Ready(t.Context()); return err }, []string{"bd ready --json", "asked for"}},
		"fail-stderr@list":    {func(c *CLI, _ string) error { _, err := c.List(t.Context()); return err }, []string{"bd list --all", "the fault that was asked for"}},
		"garbage@list":        {func(c *CLI, _ string) error { _, err := c.List(t.Context()); return err }, []string{"not the JSON", "by hand"}},
		"garbage@create":      {func(c *CLI, _ string) error { _, err := c.Add(t.Context(), New{Title: "x"}); return err }, []string{"may have been added"}},
		"hang@show":           {func(c *CLI, id string) error { _, err := c.Get(t.Context(), id); return err }, []string{"timed out", "by hand"}},
		"flood=70000000@show": {func(c *CLI, id string) error { _, err := c.Get(t.Context(), id); return err }, []string{"64 MiB"}},
		"lost@close":          {func(c *CLI, id string) error { _, err := c.Close(t.Context(), id, "", "r"); return err }, []string{"exit code 1 without output"}},
	} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			s := bdSite(t, "", nil)
			a := add(t, s.cli(t), New{Title: "a"})
			c := s.cli(t, "FAKEBD_FAULT="+fault)
			if strings.HasPrefix(fault, "hang") {
				c.limit = time.Second
			}
			err := test.call(c, a.ID)
			failed := (*ProgramError)(nil)
			if !errors.As(err, &failed) {
				t.Fatalf("got %v", err)
			}
			for _, word := range test.says {
				if !strings.Contains(err.Error(), word) {
					t.Errorf("%q is not in: %v", word, err)
				}
			}
		})
	}
}

// A change that was made counts, even if the program prints garbage afterwards. Other output
// next to an answer is ignored. If the program does not support a flag, it is run again without
// it.
func TestFaultsThatAreNone(t *testing.T) {
	for _, fault := range []string{
		"lost@update", "garbage@update", "garbage@close", "noise", "old=exclude-type@ready", "old=append-notes@update", "slow=20",
	} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			s := bdSite(t, "", nil)
			a, b := add(t, s.cli(t), New{Title: "a"}), add(t, s.cli(t), New{Title: "b"})
			add(t, s.cli(t), New{Title: "e", Type: "epic"})
			c := s.cli(t, "FAKEBD_FAULT="+fault)
			if ready, err := c.Ready(t.Context()); err != nil || len(ready) != 2 {
				t.Errorf("ready %s, %v", ids(ready), err)
			}
			got, err := c.Claim(t.Context(), a.ID, "me")
			is(t, c, got, err, Task{Status: StatusInProgress, Assignee: "me"})
			if fault != "lost@update" {
				got, err = c.Block(t.Context(), a.ID, "me", "n")
				is(t, c, got, err, Task{Status: StatusBlocked, Notes: "n"})
				got, err = c.Release(t.Context(), a.ID, "me", "m")
				is(t, c, got, err, Task{Status: StatusOpen, Notes: "n\nm"})
			}
			got, err = c.Close(t.Context(), b.ID, "me", "r")
			is(t, c, got, err, Task{Status: StatusClosed, CloseReason: "r"})
		})
	}
}

// A note whose command succeeded without an answer is not written again.
func TestLostNote(t *testing.T) {
	s := bdSite(t, "", nil)
	plain := s.cli(t)
	a := add(t, plain, New{Title: "a"})
	if _, err := plain.Claim(t.Context(), a.ID, "me"); err != nil {
		t.Fatal(err)
	}
	lost := s.cli(t, "FAKEBD_FAULT=lost@update")
	got, err := lost.Block(t.Context(), a.ID, "me", "why")
	is(t, plain, got, err, Task{Status: StatusBlocked, Notes: "why"})
	if _, err := lost.Release(t.Context(), a.ID, "", "open again"); err == nil {
		t.Error("a person's command that failed went well")
	}
	got, err = plain.Release(t.Context(), a.ID, "", "open again")
	is(t, plain, got, err, Task{Status: StatusOpen, Notes: "why\nopen again"})
}

// If another actor claims the task between the check and the change, the program's own
// claim detects it.
func TestFenceInTheProgram(t *testing.T) {
	s := bdSite(t, "", nil)
	c := s.cli(t)
	a := add(t, c, New{Title: "a"})
	mine, err := c.Claim(t.Context(), a.ID, "me")
	if err != nil {
		t.Fatal(err)
	}
	s.bd(t, "update", a.ID, "--status=open", "--assignee=", "--force")
	s.bd(t, "--actor=you", "update", a.ID, "--claim")
	if _, err := c.update(t.Context(), mine, "me", StatusBlocked, "n", true); err == nil || !strings.Contains(err.Error(), "already claimed by you") {
		t.Errorf("got %v", err)
	}
	now, err := c.Get(t.Context(), a.ID)
	is(t, c, now, err, Task{Status: StatusInProgress, Assignee: "you"})
}

func TestNextSteps(t *testing.T) {
	s := bdSite(t, "", nil)
	if err := os.RemoveAll(filepath.Join(s.dir, directory, "fakebd")); err != nil {
		t.Fatal(err)
	}
	_, err := s.cli(t).List(t.Context())
	if err == nil || !strings.Contains(err.Error(), "no beads database found") || !strings.Contains(err.Error(), "bd bootstrap") {
		t.Errorf("no database: %v", err)
	}
	gone := newCLI(BD, filepath.Join(s.dir, "gone"), s.dir, filepath.Join(s.dir, directory), s.env)
	if _, err := gone.List(t.Context()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no program: %v", err)
	}
	for message, next := range map[string]string{
		"database schema version 12 is newer than this binary supports": "upgrade yours: npm install -g @beads/bd",
		"forward schema drift":          "upgrade yours",
		"cannot create: read-only mode": "needs write access",
		"something else":                "",
	} {
		e := &ProgramError{Program: BD, Args: []string{"close", "--reason=it's " + strings.Repeat("long ", 100), "--", "a-1"}, ExitCode: 1, Message: message}
		text := e.Error()
		if !strings.Contains(text, next) || !strings.HasPrefix(text, `bd close "--reason=it's long`) || len(text) > 400 || strings.Contains(text, ";") != (next != "") {
			t.Errorf("%q: %s", message, text)
		}
	}
}

// The end of the context ends the program and the wait for it.
func TestProgramEndsWithTheContext(t *testing.T) {
	s := bdSite(t, "", nil)
	c := s.cli(t, "FAKEBD_FAULT=hang@list")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 2)
	for range 2 {
		go func() {
			_, err := c.List(ctx)
			done <- err
		}()
	}
	running(t, s)
	cancel()
	for range 2 {
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	}
	if all, err := s.cli(t).List(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("then: %v, %v", all, err)
	}
	most(t, s, 1)
}

// running waits until the program runs for the second time. The first run was init.
func running(t *testing.T, s site) {
	t.Helper()
	deadline := time.After(time.Minute)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		if n, err := fakebd.MaxAtOnce(filepath.Join(s.dir, directory)); err == nil && n > 0 {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal("the program does not run")
		}
	}
}

// most checks the maximum number of concurrent processes.
func most(t *testing.T, s site, want int) {
	t.Helper()
	if n, err := fakebd.MaxAtOnce(filepath.Join(s.dir, directory)); err != nil || n < 1 || n > want {
		t.Errorf("%d processes of bd ran at once, %v; want %d", n, err, want)
	}
}

// Even with many concurrent tasks, coven runs only one bd at a time.
func TestNoThunderingHerd(t *testing.T) {
	s := bdSite(t, "", nil)
	c := s.cli(t, "FAKEBD_FAULT=slow=5")
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			a, err := c.Add(t.Context(), New{Title: fmt.Sprint(i)})
			if err == nil {
				_, err = c.Claim(t.Context(), a.ID, "me")
			}
			if err == nil {
				_, err = c.Close(t.Context(), a.ID, "me", "done")
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	most(t, s, 1)
}

// 8 processes claim 24 tasks of one database: each task is claimed once, and the only
// error is that a task is claimed.
func TestClaimsOfProcessesAreDistinct(t *testing.T) {
	const tasks, processes = 24, 8
	var lines bytes.Buffer
	for i := range tasks {
		fmt.Fprintf(&lines, `{"id":"t-%d","title":"T","status":"open","issue_type":"task","priority":%d,"created_at":"2026-01-02T03:04:05Z","updated_at":"2026-01-02T03:04:05Z"}`+"\n", i, i%3)
	}
	s := bdSite(t, "", lines.Bytes())
	s.env = append(s.env, fmt.Sprintf("FAKEBD_FAULT=meet=%d@ready", processes)) // start simultaneously
	var all sync.WaitGroup
	claimed := make([][]string, processes)
	for i := range processes {
		cmd := workerIn(t, s, fmt.Sprint("process ", i))
		all.Go(func() {
			out, err := cmd.Output()
			if err != nil {
				t.Errorf("process %d: %v", i, err)
			}
			claimed[i] = strings.Fields(string(out))
		})
	}
	all.Wait()
	got := slices.Concat(claimed...)
	slices.Sort(got)
	if len(got) != tasks || len(slices.Compact(got)) != tasks {
		t.Errorf("%d claims: %v", len(got), claimed)
	}
	if n, err := fakebd.MaxAtOnce(filepath.Join(s.dir, directory)); err != nil || n != processes {
		t.Errorf("%d ran at once, %v; want %d", n, err, processes)
	}
}
