package worktree

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/coven-run/coven/worktree/commit"
	"github.com/coven-run/coven/worktree/diff"
	"github.com/coven-run/coven/worktree/files"
	"github.com/coven-run/coven/worktree/integrate"
	"github.com/coven-run/coven/worktree/internal/content"
	"github.com/coven-run/coven/worktree/internal/repo"
	"github.com/coven-run/coven/worktree/rescue"
	"github.com/coven-run/coven/worktree/snapshot"
	"github.com/coven-run/coven/worktree/tripwire"
)

// The content of the file outside, and of the agent's own file. git reads as many bytes as the latter had.
const (
	canary  = "a private key of the user\n"
	ofAgent = "a text that the agent has\n"
)

// A swap replaces the file d/victim while coven works, as an agent could.
type swap struct {
	name string
	// once replaces the file or its directory by something else, and puts it back. coven may be faster.
	once func(top, outside string)
}

var swaps = []swap{
	{"file", func(top, outside string) {
		replace(top, func(name string) error { return os.Symlink(filepath.Join(outside, "victim"), name) })
	}},
	{"pipe", func(top, _ string) {
		replace(top, func(name string) error { return syscall.Mkfifo(name, 0o644) })
	}},
	{"directory", func(top, outside string) {
		_ = os.Rename(filepath.Join(top, "d"), filepath.Join(top, "away.log"))
		_ = os.Symlink(outside, filepath.Join(top, "d"))
		_ = os.Remove(filepath.Join(top, "d"))
		_ = os.Rename(filepath.Join(top, "away.log"), filepath.Join(top, "d"))
		in, err := os.OpenRoot(top) // the directory may be a link again, from a snapshot
		if err != nil {
			return
		}
		defer in.Close()          //nolint:errcheck // the agent does not care
		_ = in.Remove("d/victim") // so that coven reads it again
		_ = in.WriteFile("d/victim", []byte(ofAgent), 0o644)
		_ = os.RemoveAll(filepath.Join(top, "away.log"))
	}},
}

// replace replaces d/victim by a file that make creates, and then by a regular file.
func replace(top string, make func(name string) error) {
	spare, victim := filepath.Join(top, "spare.log"), filepath.Join(top, "d/victim")
	for _, create := range []func(string) error{make, func(name string) error { return os.WriteFile(name, []byte(ofAgent), 0o644) }} {
		_ = os.Remove(spare) // it is left if coven has just removed the directory
		_ = create(spare)
		_ = os.Rename(spare, victim)
	}
}

// An escape is an operation of coven on the files of an agent.
type escape struct {
	name    string
	writes  bool
	prepare func(t *testing.T, w *repo.Worktree)
	do      func(ctx context.Context, t *testing.T, w *repo.Worktree) error
}

var escapes = []escape{
	{"snapshot", false, nil, func(ctx context.Context, _ *testing.T, w *repo.Worktree) error {
		_, err := snapshot.Take(ctx, w, "s", "")
		return err
	}},
	{"tree", false, nil, func(ctx context.Context, _ *testing.T, w *repo.Worktree) error {
		_, err := content.Tree(ctx, w)
		return err
	}},
	{"commit", false, nil, func(ctx context.Context, _ *testing.T, w *repo.Worktree) error {
		_, err := commit.Create(ctx, w, commit.Request{Message: "m", TargetTip: "main"})
		return err
	}},
	{"diff", false, nil, func(ctx context.Context, _ *testing.T, w *repo.Worktree) error {
		_, err := diff.Of(ctx, w, "main")
		return err
	}},
	{"rescue", false, nil, func(ctx context.Context, _ *testing.T, w *repo.Worktree) error {
		_, err := rescue.Take(ctx, w, "m", true)
		return err
	}},
	{"rescue of files", false, nil, func(ctx context.Context, _ *testing.T, w *repo.Worktree) error {
		_, err := rescue.StoreFiles(ctx, w, "m", []string{"d/victim"})
		return err
	}},
	{"rescue of a nested repository", false, nested, func(ctx context.Context, _ *testing.T, w *repo.Worktree) error {
		_, err := rescue.Take(ctx, w, "m", true)
		return err
	}},
	{"rescue of ignored files", false, ignored, func(ctx context.Context, _ *testing.T, w *repo.Worktree) error {
		_, err := rescue.Take(ctx, w, "m", true)
		return err
	}},
	{"list", false, nil, func(ctx context.Context, _ *testing.T, w *repo.Worktree) error {
		_, err := files.List(ctx, w)
		return err
	}},
	{"watch", false, beside, func(ctx context.Context, _ *testing.T, w *repo.Worktree) error {
		other, err := w.Repo.Find(ctx, "other")
		if err != nil {
			return err
		}
		m, err := tripwire.Watch(ctx, other, tripwire.WatchOptions{}) // it reads the worktrees of other tasks
		if err != nil {
			return err
		}
		_, err = m.Compare(ctx)
		return err
	}},
	{"merge", true, nil, func(ctx context.Context, t *testing.T, w *repo.Worktree) error {
		_, err := integrate.Merge(ctx, w, targetOf(w.Repo, t))
		return err
	}},
	{"remove and add", true, nil, func(ctx context.Context, t *testing.T, w *repo.Worktree) error {
		if _, err := Remove(ctx, w, RemoveRequest{Note: "m", KeepBig: true}); err != nil {
			return err
		}
		_, err := Add(ctx, w.Repo, AddRequest{TaskID: w.TaskID, Base: targetOf(w.Repo, t).Tip})
		return err
	}},
	{"revert", true, nil, func(ctx context.Context, t *testing.T, w *repo.Worktree) error {
		if _, err := snapshot.Find(ctx, w.Repo, "first", 1); err != nil {
			_, err := snapshot.Take(ctx, w, "first", "")
			return err
		}
		_, err := snapshot.Revert(ctx, w, "first", 1)
		return err
	}},
	{"restore", true, nil, func(ctx context.Context, _ *testing.T, w *repo.Worktree) error {
		_, err := snapshot.Restore(ctx, w, "s", "main")
		return err
	}},
}

// nested makes the directory d a repository of its own, as it is outside.
func nested(t *testing.T, w *repo.Worktree) {
	t.Helper()
	gitIn(t, w.Path, "init", "-q", "d")
	for i := range 50 {
		write(t, filepath.Join(w.Path, "d/.git/keys", fmt.Sprint(i)), ofAgent)
	}
}

// ignored makes git ignore the directory d, which is then not in the index.
func ignored(t *testing.T, w *repo.Worktree) {
	t.Helper()
	gitIn(t, w.Path, "rm", "-q", "-r", "--cached", "d")
	write(t, filepath.Join(w.Path, ".gitignore"), "/d\n*.log\n")
	gitIn(t, w.Path, "add", ".gitignore")
	gitIn(t, w.Path, "commit", "-qm", "ignore d")
}

// beside adds the worktree of another task.
func beside(t *testing.T, w *repo.Worktree) {
	t.Helper()
	add(t, w.Repo, "other")
}

// An agent that replaces files and directories while coven reads them gets no byte of a file outside its worktree into
// the repository, and coven does not wait for a pipe.
func TestEscapes(t *testing.T) {
	rounds := 8
	if isLong() {
		rounds = 200
	}
	for _, e := range escapes {
		for _, s := range swaps {
			t.Run(e.name+" "+s.name, func(t *testing.T) {
				r := sample(t)
				outside := t.TempDir()
				write(t, filepath.Join(outside, "victim"), canary)
				for i := range 50 {
					write(t, filepath.Join(outside, ".git/keys", fmt.Sprint(i)), canary)
				}
				write(t, filepath.Join(r.Root, "d/victim"), "on the branch\n")
				gitIn(t, r.Root, "add", "d")
				gitIn(t, r.Root, "commit", "-qm", "d")
				w := add(t, r, "T")
				if e.prepare != nil {
					e.prepare(t, w)
				}
				stop, stopped := make(chan struct{}), make(chan struct{})
				go func() {
					defer close(stopped)
					for {
						select {
						case <-stop:
							return
						default:
							s.once(w.Path, outside)
						}
					}
				}()
				done := 0
				for range rounds {
					if err := e.do(t.Context(), t, w); err != nil {
						t.Log(err)
					} else {
						done++
					}
				}
				close(stop)
				<-stopped
				if done == 0 && !e.writes { // git does not overwrite a file that changes
					t.Error("every attempt failed")
				}
				if stores(t, r, canary) {
					t.Error("the repository has the file outside")
				}
				equal(t, "the file outside", read(t, filepath.Join(outside, "victim")), canary)
			})
		}
	}
}

// stores reports whether an object of the repository, or of the private parts of rescues, contains the text.
func stores(t *testing.T, r *repo.Repo, text string) bool {
	t.Helper()
	for _, dir := range []string{r.GitDir, r.StatePath("private")} {
		if exists(dir) && strings.Contains(objectsIn(t, dir), text) {
			return true
		}
	}
	return false
}

// objectsIn returns the contents of all objects of a git directory.
func objectsIn(t *testing.T, dir string) string {
	t.Helper()
	out, err := exec.Command("git", "--git-dir="+dir, "cat-file", "--batch-all-objects", "--batch", "--buffer").Output()
	must(t, err)
	return string(out)
}

// Names that git on another system takes for .git do not land, whoever commits them. Snapshots have them.
func TestNamesOfOtherSystems(t *testing.T) {
	for _, name := range []string{".g\u200cit", ".GIT\ufeff", "git~1", "GIT~1 .", ".git ", ".git::$INDEX_ALLOCATION"} {
		for _, committed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%q %v", name, committed), func(t *testing.T) {
				r := sample(t)
				w := add(t, r, "T")
				write(t, filepath.Join(w.Path, name, "config"), "[core]\n")
				if committed {
					gitIn(t, w.Path, "-c", "core.protectNTFS=false", "add", "-A")
					gitIn(t, w.Path, "-c", "core.protectNTFS=false", "commit", "-qm", "m")
				}
				s := value[snapshot.Snapshot](t)(snapshot.Take(t.Context(), w, "s", ""))
				equal(t, "in the snapshot", gitIn(t, r.Root, "show", s.Tree+":"+name+"/config"), "[core]")
				tip := value[string](t)(w.Tip(t.Context()))
				_, err := commit.Create(t.Context(), w, commit.Request{Message: "m", TargetTip: "main"})
				equal(t, "path", wantError[*commit.SuspectError](t, err).Files[0].Path, name+"/config")
				equal(t, "the branch", value[string](t)(w.Tip(t.Context())), tip)
			})
		}
	}
}
