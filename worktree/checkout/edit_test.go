package checkout

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// during returns a checkout in which the user changes something at the moment of the first exchange.
func (r repo) during(act string) *Checkout {
	c := r.checkout()
	started := false
	c.exchange = func(from, to place) error {
		if !started {
			started = true
			r.sh(act)
		}
		return exchangeAt(from, to)
	}
	return c
}

// The user's changes between the check and the exchange are preserved: the move is refused with the name of
// the file, and everything else is as before.
func TestEditedMeanwhile(t *testing.T) {
	old := "echo 1 >a; echo 1 >b; mkdir d e; echo 1 >d/x; echo 1 >e/x; echo 1 >gone"
	change := "echo 2 >a; echo 2 >b; rm -r d; echo 2 >d; rm gone; echo 2 >new; mkdir n; echo 2 >n/x; rm -r e"
	for what, c := range map[string]struct{ act, file string }{
		"a file that changes":                {"echo mine >b", "b"},
		"and is replaced":                    {"echo mine >b.tmp; mv b.tmp b", "b"},
		"and loses its permissions":          {"chmod 600 b", "b"},
		"and becomes a link":                 {"ln -sf elsewhere b", "b"},
		"and is deleted":                     {"rm b", "b"},
		"a file that is deleted":             {"echo mine >gone", "gone"},
		"a file that is added":               {"echo mine >new", "new"},
		"a directory of one":                 {"rmdir n; echo mine >n", "n/x"},
		"a directory that becomes a file":    {"echo mine >d/mine", "d"},
		"and in it":                          {"echo mine >d/x", "d"},
		"a directory that is exchanged away": {"rm -r e; ln -s elsewhere e", ""},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			r, from, to := prepare(t, filepath.Join(t.TempDir(), "r"), "", old, change, "")
			m, err := r.during(c.act).Advance(t.Context(), from, to)
			if c.file == "" { // the file to be deleted no longer exists
				r.ok(err)
				r.ok(m.Undo(t.Context()))
			} else if e, ok := errors.AsType[*Error](err); !ok || strings.Join(e.Files, " ") != c.file {
				t.Fatalf("%v, want a refusal for %s", err, c.file)
			}
			other, _, _ := prepare(t, filepath.Join(t.TempDir(), "r"), "", old, change, "mkdir n\n"+c.act+"\nrmdir n 2>&1 || :")
			same(t, "afterwards", r.look(), other.look())
			r.clean()
		})
	}
}

// An editor that has a file open may write to the old file after it was displaced: those bytes are rescued.
func TestWrittenLate(t *testing.T) {
	r, from, to := prepare(t, filepath.Join(t.TempDir(), "r"), "", "echo 1 >a; echo 1 >gone", "echo 2 >a; rm gone", "")
	c := r.checkout()
	rescued := map[string]string{}
	c.Rescue = func(_ context.Context, files map[string]string) error {
		for path, file := range files {
			raw, err := os.ReadFile(file)
			r.ok(err)
			rescued[path] = string(raw)
		}
		return nil
	}
	var open []*os.File
	for _, name := range []string{"a", "gone"} {
		file, err := os.OpenFile(filepath.Join(r.dir, name), os.O_WRONLY|os.O_APPEND, 0)
		r.ok(err)
		defer func() { _ = file.Close() }()
		open = append(open, file)
	}
	m, err := c.Advance(t.Context(), from, to)
	r.ok(err)
	for _, file := range open {
		_, err := file.WriteString("late\n")
		r.ok(err)
	}
	r.git("update-ref", "refs/heads/main", to)
	r.ok(m.Finish(t.Context()))
	if rescued["a"] != "1\nlate\n" || rescued["gone"] != "1\nlate\n" || len(rescued) != 2 {
		t.Errorf("rescued %q", rescued)
	}
	same(t, "status", r.git("status", "--porcelain"), "")
	r.clean()
}

// Files that cannot be rescued stay in place, and the next recovery tries again.
func TestRescueFails(t *testing.T) {
	r, from, to := prepare(t, filepath.Join(t.TempDir(), "r"), "", "echo 1 >a", "echo 2 >a", "")
	file, err := os.OpenFile(filepath.Join(r.dir, "a"), os.O_WRONLY|os.O_APPEND, 0)
	r.ok(err)
	defer func() { _ = file.Close() }()
	c := r.checkout()
	m, err := c.Advance(t.Context(), from, to)
	r.ok(err)
	_, err = file.WriteString("late\n")
	r.ok(err)
	r.git("update-ref", "refs/heads/main", to)
	if err := m.Finish(t.Context()); err == nil || !strings.Contains(err.Error(), "to be rescued") {
		t.Fatalf("settled: %v", err)
	}
	stored := 0
	c.Rescue = func(context.Context, map[string]string) error { stored++; return nil }
	r.ok(r.recover(c))
	if stored != 1 {
		t.Errorf("stored %d times", stored)
	}
	r.clean()
}

// A lock of another git process is awaited and never removed: neither before a move, nor when coven was
// killed and its own lock was removed.
func TestForeignLock(t *testing.T) {
	r, from, to := prepare(t, filepath.Join(t.TempDir(), "r"), "", "echo 1 >a", "echo 2 >a", "")
	before, lock := r.look(), filepath.Join(r.gitDir(), "index.lock")
	r.ok(os.WriteFile(lock, nil, 0o644))
	if _, err := r.checkout().Advance(t.Context(), from, to); err == nil || !strings.Contains(err.Error(), "the index is locked") {
		t.Fatalf("advanced: %v", err)
	}
	same(t, "refused", r.look(), before)
	r.ok(os.Remove(lock))
	r.clean()

	for _, kill := range []string{"checkout.locked", "checkout.step.after", "checkout.index.after"} {
		if !r.act([]string{"COVEN_CRASH_POINT=" + kill}, "land", "here", r.dir, from, to) {
			t.Fatal("it was not killed")
		}
		if Token(lock) == "" {
			t.Fatal("coven's lock does not say whose it is")
		}
		r.ok(os.WriteFile(lock, nil, 0o644))
		if err := r.recover(r.checkout()); kill != "checkout.locked" && (err == nil || !strings.Contains(err.Error(), "the index is locked")) {
			t.Fatalf("%s: recovered: %v", kill, err)
		}
		if _, err := os.Lstat(lock); err != nil {
			t.Fatalf("%s: the lock of another git was removed", kill)
		}
		r.ok(os.Remove(lock))
		r.ok(r.recover(r.checkout()))
		same(t, kill, r.look(), before)
		r.clean()
	}
}

// A user removes coven's lock after a kill and continues to work: recovery reverts only paths that have not
// changed since.
func TestRecoverAfterWork(t *testing.T) {
	for what, c := range map[string]struct{ kill, work, want string }{
		"edits a new file":      {"checkout.index.after", "echo mine >a", " M a\n M b\n"},
		"edits an added file":   {"checkout.index.after", "echo mine >new", " M b\n?? new\n"},
		"edits and stages":      {"checkout.index.after", "echo mine >a; git add a", "M  a\n M b\n"},
		"stages something else": {"checkout.index.after", "git add b", "M  b\n"},
		"before the index":      {"checkout.step.after:2", "git add b", "M  b\n"},
		"restores everything":   {"checkout.step.after:2", "git reset -q --hard", ""},
		"deletes a new file":    {"checkout.step.after:2", "rm new", " M b\n"},
		"replaces an old file":  {"checkout.index.after", "echo mine >gone", " M b\n M gone\n"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			r, from, to := prepare(t, filepath.Join(t.TempDir(), "r"), "",
				"echo 1 >a; echo 1 >b; echo 1 >gone", "echo 2 >a; echo 2 >new; rm gone", "echo dirty >b")
			if !r.act([]string{"COVEN_CRASH_POINT=" + c.kill}, "land", "here", r.dir, from, to) {
				t.Fatal("it was not killed")
			}
			r.sh("rm .git/index.lock; " + c.work)
			r.ok(r.recover(r.checkout()))
			out, err := r.try("status", "--porcelain")
			r.ok(err)
			same(t, "status", out, c.want)
			r.clean()
		})
	}
}

// nextSecond waits for the next second, because git compares timestamps in seconds.
func nextSecond() {
	for now := time.Now().Unix(); time.Now().Unix() == now; {
		<-time.After(10 * time.Millisecond)
	}
}

// A new file that is edited before the index is in place is shown as changed, even if its size is the same.
func TestEditedAfterwards(t *testing.T) {
	r, from, to := prepare(t, filepath.Join(t.TempDir(), "r"), "", "echo 1 >a; echo 1 >b", "echo 2 >a; echo 2 >b", "")
	c := r.checkout()
	c.exchange = func(from, to place) error {
		err := exchangeAt(from, to)
		if to.name == "a" {
			r.sh("echo 3 >a")
		} else {
			nextSecond()
		}
		return err
	}
	m, err := c.Advance(t.Context(), from, to)
	r.ok(err)
	r.git("update-ref", "refs/heads/main", to)
	r.ok(m.Finish(t.Context()))
	out, err := r.try("status", "--porcelain")
	r.ok(err)
	same(t, "status", out, " M a\n")
}

// New files have the timestamps in the index that git would give them, even if putting them in place takes
// a while, so that git need not read them again.
func TestStamps(t *testing.T) {
	r, from, to := prepare(t, filepath.Join(t.TempDir(), "r"), "", "echo 1 >a; mkdir d; echo 1 >d/x", "echo 2 >a; echo 2 >b; rm -r d; echo 2 >d", "")
	c := r.checkout()
	c.exchange = func(from, to place) error {
		nextSecond()
		return exchangeAt(from, to)
	}
	m, err := c.Advance(t.Context(), from, to)
	r.ok(err)
	r.git("update-ref", "refs/heads/main", to)
	r.ok(m.Finish(t.Context()))
	same(t, "to be read again", r.git("diff-files", "--name-only"), "")
}

func TestSwitchedMeanwhile(t *testing.T) {
	r, from, to := prepare(t, filepath.Join(t.TempDir(), "r"), "", "echo 1 >a", "echo 2 >a", "git checkout -q -b other")
	before := r.look()
	_, err := r.checkout().Advance(t.Context(), from, to)
	if e, ok := errors.AsType[*Error](err); !ok || !strings.Contains(e.Reason, "switched") {
		t.Fatalf("advanced: %v", err)
	}
	same(t, "refused", r.look(), before)
	r.clean()
}

// addLink adds a submodule to a commit.
const addLink = "git update-index --add --cacheinfo 160000,1111111111111111111111111111111111111111,s; mkdir -p s"

// inTheWay are changes by the user because of which a move is refused, and the files that the error names.
var inTheWay = map[string]struct{ old, new, person, files, reason string }{
	"untracked in a directory":  {"mkdir d; echo 1 >d/a", "rm -r d; echo 2 >d", "echo mine >d/mine", "d/mine", "in the way"},
	"ignored in a directory":    {"mkdir d; echo 1 >d/a; echo '*.o' >.gitignore", "rm -r d; echo 2 >d", "echo mine >d/x.o", "d/x.o", "in the way"},
	"file for a directory":      {"echo 1 >a", "mkdir d; echo 2 >d/a", "echo mine >d", "d", "in the way"},
	"link for a directory":      {"echo 1 >a", "mkdir d; echo 2 >d/a", "ln -s /tmp d", "d", "in the way"},
	"directory behind a link":   {"mkdir d; echo 1 >d/a", "echo 2 >d/a", "mv d e; ln -s e d", "d/a", "in the way"},
	"edited, then assumed":      {"echo 1 >a", "echo 2 >a", "git update-index --assume-unchanged a; echo mine >a", "a", "in the way"},
	"edited, and its times":     {"echo 1234 >a; touch -d '1 hour ago' a", "echo 2 >a", "git config core.trustctime false; git config core.checkStat minimal; cp -p a b; echo mine >a; touch -r b a; rm b", "a", "in the way"},
	"staged deletion":           {"echo 1 >a", "echo 2 >a", "git rm -q --cached a", "a", "in the way"},
	"work in a submodule":       {addLink, "git rm -q --cached s; rmdir s; echo 2 >s", "echo mine >s/mine", "s", "in the way"},
	"a sparse checkout changed": {"mkdir in out; echo 1 >in/a; echo 1 >out/a", "echo 2 >in/a", "git sparse-checkout set in; echo '/*' >.git/info/sparse-checkout", "out/a", "sparse"},
	"a named pipe":              {"echo 1 >a", "echo 2 >b", "mkfifo b", "b", "in the way"},
}

// The error names the files in the way, and nothing changes.
func TestRefused(t *testing.T) {
	for what, c := range inTheWay {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			r, from, to := prepare(t, filepath.Join(t.TempDir(), "r"), "", c.old, c.new, c.person)
			before, stamps := r.look(), r.stamps()
			_, err := r.checkout().Advance(t.Context(), from, to)
			e, ok := errors.AsType[*Error](err)
			if !ok || strings.Join(e.Files, " ") != c.files || !strings.Contains(e.Reason, c.reason) || e.Next == "" {
				t.Errorf("%v, want a refusal for %s", err, c.files)
			}
			same(t, "refused", r.look(), before)
			same(t, "stamps", r.stamps(), stamps)
			r.clean()
		})
	}
}

// A stage at the top of the checkout is neither shown nor cleaned by git.
func TestStageAtTop(t *testing.T) {
	r, from, to := prepare(t, filepath.Join(t.TempDir(), "r"), "", "echo 1 >a", "echo 2 >a", "")
	c := r.during("ls -d .coven-*/new .coven-*/.gitignore && ! git status --porcelain -uall | grep coven && git clean -fd && ls -d .coven-*/new")
	c.stageAtTop = true
	m, err := c.Advance(t.Context(), from, to)
	r.ok(err)
	r.git("update-ref", "refs/heads/main", to)
	r.ok(m.Finish(t.Context()))
	same(t, "status", r.git("status", "--porcelain"), "")
	r.clean()
}

// The git directory and the checkout are on different file systems.
func TestApart(t *testing.T) {
	shm, err := os.MkdirTemp("/dev/shm", "coven-test-")
	if err != nil {
		t.Skip("there is no second file system at /dev/shm")
	}
	t.Cleanup(func() { _ = os.RemoveAll(shm) })
	dir := t.TempDir()
	a, _ := nodeOf(shm)
	b, _ := nodeOf(dir)
	if a.Dev == b.Dev {
		t.Skip("/dev/shm is no file system of its own")
	}
	r := newRepo(t, filepath.Join(dir, "r"), "--separate-git-dir", filepath.Join(shm, "git"))
	from := r.commit("echo 1 >a; mkdir d; echo 1 >d/x")
	to := r.commit("echo 2 >a; rm -r d; echo 2 >d; echo 2 >n")
	r.git("reset", "-q", "--hard", from)
	before, stamps := r.look(), r.stamps()
	m, err := r.checkout().Advance(t.Context(), from, to)
	r.ok(err)
	r.ok(m.Undo(t.Context()))
	same(t, "undone", r.look(), before)
	same(t, "stamps", r.stamps(), stamps)
	r.settle(from, to)
	same(t, "status", r.git("status", "--porcelain"), "")
	r.clean()
}

// A landing's record in a format that no version since v0.1.0 has written is refused, with the command that
// removes it.
func TestUnknownRecord(t *testing.T) {
	r := newRepo(t, filepath.Join(t.TempDir(), "r"))
	c := r.checkout()
	r.ok(os.MkdirAll(filepath.Dir(c.State), 0o755))
	for _, record := range []string{`{"checkout":"x","from":"a","to":"b"}`, `{"token":"t"}`, `{`} {
		r.ok(os.WriteFile(c.recordPath(), []byte(record), 0o644))
		if _, left, err := c.Left(); err == nil || left != nil || !strings.Contains(err.Error(), "the record of a landing cannot be read: ") || !strings.Contains(err.Error(), "; next: rm ") {
			t.Errorf("%s: %v, %v", record, left, err)
		}
	}
}

// A full file system is reported as the cause.
func TestExplain(t *testing.T) {
	dir := t.TempDir()
	for err, full := range map[error]bool{unix.ENOSPC: true, unix.EDQUOT: true, unix.EIO: false} {
		e, ok := errors.AsType[*Error](Explain(err, dir, filepath.Join(dir, "not", "there")))
		if ok != full || full && (!errors.Is(e, ErrFull) || !errors.Is(e, err) || e.Next != "make room on the file system of "+dir) {
			t.Errorf("%v: %v", err, e)
		}
	}
}

// If the content of the files proves that nothing is in the way of a move, git agrees once it has read them, so that it
// need not be run. This includes the usual moves.
func TestUntouched(t *testing.T) {
	untouched := func(old, new, config, person string) bool {
		r, from, to := prepare(t, filepath.Join(t.TempDir(), "r"), config, old, new, person)
		c := r.checkout()
		changes, err := c.Git.Changes(t.Context(), from, to)
		r.ok(err)
		m := &Move{c: c, rec: record{From: from, To: to, Checkout: c.top(), Ref: c.Ref, Task: c.Task, Token: newToken()}, staged: map[string]unix.Stat_t{}}
		r.ok(m.begin(t.Context()))
		defer func() { r.ok(m.Undo(t.Context())) }()
		before, err := m.copyIndex(t.Context(), from)
		r.ok(err)
		got := m.untouched(before, changes)
		_ = m.whole().Run(t.Context(), "update-index", "-q", "--refresh")
		if err := m.check(t.Context(), from, to); got && err != nil {
			t.Errorf("from %s to %s, then %s: git refuses it: %v", old, new, person, err)
		}
		return got
	}
	for what, s := range shapes {
		if got := untouched(s.old, s.new, s.config, s.person); !got && slices.Contains([]string{"change", "add", "delete", "rename", "executable", "link"}, what) {
			t.Errorf("%s: git is asked", what)
		}
	}
	for _, c := range inTheWay {
		untouched(c.old, c.new, "", c.person)
	}
	const old, new = "echo 1 >a; echo 1 >b; mkdir d; echo 1 >d/e", "echo 2 >a; echo 2 >n; mkdir f; echo 2 >f/g"
	for _, person := range []string{
		"echo 2 >a", "echo mine >n", "chmod +x a", "rm a; ln -s b a", "rm a", "mkdir n", "echo mine >f", "ln -s d f",
		"echo 2 >a; touch -r b a", // the same size and modification time, but another change time
		"echo mine >n; git add n", "echo mine >n; git add n; rm n", "git rm -q a", "git rm -q --cached a", "mkdir n; echo x >n/x; git add n; rm -r n", "echo x >f; git add f; rm f",
		"echo 3 >a; touch -d '1 hour ago' a; git add a", "chmod +x a; git add a",
		"git update-index --assume-unchanged a; echo 2 >a", "git update-index --skip-worktree a",
		"printf '100644 %s 1\\tx\\n' $(git rev-parse HEAD:a) | git update-index --index-info",
	} {
		if untouched(old, new, "", person) {
			t.Errorf("%s: git is not asked", person)
		}
	}
	for _, person := range []string{"", "echo mine >b", "echo mine >other", "rm -r d", "echo mine >d/e; git add d", "mkdir f", "git update-index --split-index", "touch a", "git update-index --assume-unchanged a"} {
		if !untouched(old, new, "", person) {
			t.Errorf("%q: git is asked, but nothing is in the way", person)
		}
	}
}
