package worktree

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coven-run/coven/worktree/claim"
	"github.com/coven-run/coven/worktree/commit"
	"github.com/coven-run/coven/worktree/integrate"
	"github.com/coven-run/coven/worktree/internal/content"
	"github.com/coven-run/coven/worktree/internal/file"
	"github.com/coven-run/coven/worktree/internal/repo"
	"github.com/coven-run/coven/worktree/isolation"
	"github.com/coven-run/coven/worktree/land"
	"github.com/coven-run/coven/worktree/rescue"
	"github.com/coven-run/coven/worktree/tripwire"
)

// TestMain isolates the environment, or runs as a process that a test started from its own binary.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "actor" {
		os.Exit(actor(os.Args[2:]))
	}
	if len(os.Args) > 2 && os.Args[1] == "lost" {
		os.Exit(destroyer(os.Args[2:]))
	}
	os.Exit(sealed(m))
}

// oneAtATime skips a long test without concurrency if the race detector is enabled, which makes it much
// slower. CI runs it without the race detector.
func oneAtATime(t *testing.T) {
	t.Helper()
	if racing {
		t.Skip("nothing runs at the same time")
	}
}

// isLong reports whether tests run at full length, which takes minutes. `make long` does that.
func isLong() bool { return os.Getenv("COVEN_LONG") != "" }

// seeds yields the seeds of a search's cases: only the first few, except in `make long`.
func seeds(few, all uint64) iter.Seq[uint64] {
	n := few
	if isLong() {
		n = all
	}
	return func(yield func(uint64) bool) {
		for seed := range n {
			if !yield(seed) {
				return
			}
		}
	}
}

func sealed(m *testing.M) int {
	home, err := os.MkdirTemp("", "coven-home-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(home) }()
	env := map[string]string{
		"HOME": home, "XDG_CONFIG_HOME": home, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1",
		"GIT_AUTHOR_NAME": "Ada", "GIT_AUTHOR_EMAIL": "ada@example.com",
		"GIT_COMMITTER_NAME": "Ada", "GIT_COMMITTER_EMAIL": "ada@example.com",
	}
	for key, value := range env {
		if err := os.Setenv(key, value); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	if !isLong() {
		if err := flag.Set("rapid.checks", "20"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return m.Run()
}

// rescued returns a file of a rescue, as coven rescue restore writes it, without a final line feed.
func rescued(t testing.TB, r *repo.Repo, ref, name string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "restored")
	must(t, rescue.Export(t.Context(), r, value[rescue.Info](t)(rescue.Find(t.Context(), r, ref)), dir))
	if target, err := os.Readlink(filepath.Join(dir, name)); err == nil {
		return target
	}
	return strings.TrimSuffix(read(t, filepath.Join(dir, name)), "\n")
}

// rescuedFiles returns the paths of the files of a rescue, a line each.
func rescuedFiles(t testing.TB, r *repo.Repo, ref string) string {
	t.Helper()
	var paths strings.Builder
	for _, f := range value[[]rescue.File](t)(rescue.Files(t.Context(), r, value[rescue.Info](t)(rescue.Find(t.Context(), r, ref)))) {
		fmt.Fprintln(&paths, f.Path)
	}
	return paths.String()
}

// gitIn runs git as a user would and returns its output.
func gitIn(t testing.TB, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return strings.TrimSuffix(string(out), "\n")
}

func write(t testing.TB, path, content string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	must(t, os.WriteFile(path, []byte(content), 0o644))
}

func read(t testing.TB, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	must(t, err)
	return string(raw)
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func value[T any](t testing.TB) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		must(t, err)
		return v
	}
}

func wantError[T error](t testing.TB, err error) T {
	t.Helper()
	found, ok := errors.AsType[T](err)
	if !ok {
		t.Fatalf("got error %v, want a %T", err, found)
	}
	return found
}

func wantIs(t testing.TB, err, target error) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Fatalf("got error %v, want %v", err, target)
	}
}

func equal[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Fatalf("%s: got %v, want %v", what, got, want)
	}
}

// sample creates a repository with a few files on branch main.
func sample(t testing.TB, initArgs ...string) *repo.Repo {
	t.Helper()
	dir := value[string](t)(filepath.EvalSymlinks(t.TempDir()))
	gitIn(t, dir, append([]string{"init", "-q", "-b", "main"}, initArgs...)...)
	for i := range 8 {
		write(t, filepath.Join(dir, fmt.Sprintf("file%d.txt", i)), fmt.Sprintf("one\ntwo\nthree %d\n", i))
	}
	write(t, filepath.Join(dir, "dir", "deep", "x.txt"), "x\n")
	write(t, filepath.Join(dir, ".gitignore"), "*.log\nbuild/\n")
	write(t, filepath.Join(dir, ".beads", "issues.jsonl"), "v1\n")
	gitIn(t, dir, "add", "-A")
	gitIn(t, dir, "commit", "-qm", "first")
	return value[*repo.Repo](t)(repo.Open(t.Context(), dir))
}

func targetOf(r *repo.Repo, t testing.TB) repo.Target {
	t.Helper()
	return value[repo.Target](t)(r.Target(context.Background(), "main"))
}

func add(t testing.TB, r *repo.Repo, task string) *repo.Worktree {
	t.Helper()
	return value[*repo.Worktree](t)(Add(context.Background(), r, AddRequest{TaskID: task, Base: targetOf(r, t).Tip}))
}

// commitAll commits the worktree on top of the current target, and fails if the commit is empty.
func commitAll(t testing.TB, w *repo.Worktree, message string) commit.Commit {
	t.Helper()
	c := value[commit.Commit](t)(commit.Create(context.Background(), w, commit.Request{Message: message, TargetTip: targetOf(w.Repo, t).Tip}))
	if c.Empty {
		t.Fatal("nothing was committed")
	}
	return c
}

func claimFor(t testing.TB, r *repo.Repo, task string) claim.Held {
	t.Helper()
	return value[claim.Held](t)(claim.Acquire(context.Background(), r,
		claim.Claim{Task: task, Holder: "coven/host", Session: "s", Attempt: 1, Expires: time.Now().Add(time.Hour)}, ""))
}

// A fileJournal keeps the last intent in a file.
type fileJournal struct{ path string }

func (j fileJournal) Intent(intent integrate.Landing) error { return file.WriteJSON(j.path, intent) }

func landTask(t testing.TB, w *repo.Worktree, c integrate.Landing, strategy land.Strategy) (integrate.Landing, error) {
	t.Helper()
	held, err := claim.Of(context.Background(), w.Repo, w.TaskID)
	if errors.Is(err, claim.ErrNoClaim) {
		held, err = claimFor(t, w.Repo, w.TaskID), nil
	}
	must(t, err)
	return land.Land(context.Background(), w, land.Request{
		Landing: c, Strategy: strategy, Message: "land " + w.TaskID, ClaimOid: held.Oid,
		Journal: fileJournal{filepath.Join(t.TempDir(), "intent")},
	})
}

// status returns git's complete status of a checkout and the bytes of its files.
func status(t testing.TB, dir string) string {
	t.Helper()
	gitIn(t, dir, "update-index", "-q", "--refresh", "--really-refresh", "--unmerged")
	return gitIn(t, dir, "status", "--porcelain", "-uall") + "\n" + gitIn(t, dir, "ls-files", "-s") + "\n" + contents(t, dir)
}

// contents lists all files in a checkout with mode and content, except git's.
func contents(t testing.TB, dir string) string {
	t.Helper()
	files := value[[]string](t)(content.FilesBelow(dir, "."))
	var out strings.Builder
	for _, name := range files {
		if name == ".git" || strings.HasPrefix(name, ".coven/") {
			continue
		}
		info := value[os.FileInfo](t)(os.Lstat(filepath.Join(dir, name)))
		var content string
		if info.Mode()&os.ModeSymlink != 0 {
			content = value[string](t)(os.Readlink(filepath.Join(dir, name)))
		} else {
			content = read(t, filepath.Join(dir, name))
		}
		fmt.Fprintf(&out, "%s %v %q\n", name, info.Mode(), content)
	}
	return out.String()
}

// actor is the main function of a process started from the test binary: it lands a task, or adds and
// removes one.
func actor(args []string) int {
	var request struct {
		Root, Task, Intent, Strategy string
	}
	if err := json.Unmarshal([]byte(args[0]), &request); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	ctx := context.Background()
	err := func() error {
		r, err := repo.Open(ctx, request.Root)
		if err != nil {
			return err
		}
		if point := request.Intent; strings.HasPrefix(point, "add.") || strings.HasPrefix(point, "remove.") {
			r.Submodules = point == "add.populated"
			return addAndRemove(ctx, r, request.Task)
		}
		if strings.HasPrefix(request.Intent, "pool.") {
			return poolTwice(ctx, r, request.Intent == "pool.changed")
		}
		if journal, ok := strings.CutPrefix(request.Intent, "crowd."); ok {
			return crowd(ctx, r, request.Task, journal)
		}
		if strings.HasPrefix(request.Intent, "clear.") {
			all, err := FindStale(ctx, r, func(string) bool { return false })
			for _, s := range all {
				_, clearErr := Clear(ctx, r, s)
				err = errors.Join(err, clearErr)
			}
			return err
		}
		if strings.HasPrefix(request.Intent, "recreate.") {
			_, _, err := Recreate(ctx, r, request.Task, "s")
			return err
		}
		if strings.HasPrefix(request.Intent, "claim.renew.") {
			held, err := claim.Of(ctx, r, request.Task)
			if err == nil {
				_, err = claim.Renew(ctx, r, held, held.Expires.Add(time.Hour))
			}
			return err
		}
		w, err := r.Find(ctx, request.Task)
		if err != nil {
			return err
		}
		if request.Intent == "isolate" {
			w.OwnGitFile = true
			return isolation.Begin(ctx, w)
		}
		if request.Intent == "rescue." {
			m, err := tripwire.Watch(ctx, w, tripwire.WatchOptions{})
			if err != nil {
				return err
			}
			found, err := m.Compare(ctx)
			if err != nil {
				return err
			}
			info, err := rescue.Find(ctx, r, found.Rescue)
			if err == nil {
				_, err = tripwire.Undo(ctx, r, info)
			}
			return err
		}
		if request.Intent == "collect" {
			return isolation.TakeCommits(ctx, w)
		}
		if strings.HasPrefix(request.Intent, "conflicted.") {
			target, err := r.Target(ctx, "main")
			if err != nil {
				return err
			}
			_, err = integrate.MergeConflicted(ctx, w, target, "s")
			return err
		}
		return integrateAndLand(ctx, w, land.Strategy(request.Strategy), fileJournal{request.Intent})
	}()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// integrateAndLand integrates and lands as a run does. It repeats this if the target moves.
func integrateAndLand(ctx context.Context, w *repo.Worktree, strategy land.Strategy, journal land.Journal) error {
	held, err := claim.Of(ctx, w.Repo, w.TaskID)
	if err != nil {
		return err
	}
	for {
		target, err := w.Repo.Target(ctx, "main")
		if err != nil {
			return err
		}
		candidate, err := integrate.Merge(ctx, w, target)
		if err != nil {
			return err
		}
		_, err = land.Land(ctx, w, land.Request{
			Landing: candidate, Strategy: strategy, Message: "land " + w.TaskID,
			ClaimOid: held.Oid, Journal: journal,
		})
		if !errors.Is(err, land.ErrTargetMoved) {
			return err
		}
	}
}

func addAndRemove(ctx context.Context, r *repo.Repo, task string) error {
	w, err := Add(ctx, r, AddRequest{TaskID: task, Base: "main"})
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(w.Path, "work"), []byte("work"), 0o644); err != nil {
		return err
	}
	_, err = Remove(ctx, w, RemoveRequest{Note: "work"})
	return err
}

// landedTip returns the tip of a worktree's branch, for RemoveRequest.Landed.
func landedTip(t testing.TB, w *repo.Worktree) string {
	t.Helper()
	tip, err := w.TipIfAny(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return tip
}
