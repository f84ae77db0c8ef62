package worktree

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coven-run/coven/worktree/internal/repo"
)

// New worktrees are beside the checkout if that is possible; the templates of settings move them. From everywhere in a
// worktree, coven finds the checkout, even if the agent has changed the worktree's .git.
func TestPlaces(t *testing.T) {
	for name, c := range map[string]struct {
		template string
		plant    func(t *testing.T, root string)
		want     string // relative to the parent of the checkout
		err      string
	}{
		"beside":               {"", nil, "repo.coven/T-1", ""},
		"siblings":             {"../{repo}-{task}", nil, "repo-T-1", ""},
		"only the task":        {"../{task}", nil, "T-1", ""},
		"a directory for all":  {"../trees/{repo}/{task}", nil, "trees/repo/T-1", ""},
		"one for repositories": {"../trees/{repo}-{task}", nil, "trees/repo-T-1", ""},
		"inside":               {".coven/worktrees/{task}", nil, "repo/.coven/worktrees/T-1", ""},
		"other files": {"", func(t *testing.T, root string) {
			write(t, root+".coven/notes", "mine")
		}, "repo/.coven/worktrees/T-1", ""},
		"a link": {"", func(t *testing.T, root string) {
			must(t, os.Symlink(t.TempDir(), root+".coven"))
		}, "repo/.coven/worktrees/T-1", ""},
		"of another checkout": {"", func(t *testing.T, root string) {
			other := filepath.Join(filepath.Dir(root), "other")
			gitIn(t, filepath.Dir(root), "init", "-q", other)
			write(t, root+".coven/.checkout", "../other\nsome-id\n")
		}, "repo/.coven/worktrees/T-1", ""},
		"another coven creates it": {"", func(t *testing.T, root string) {
			write(t, root+".coven/..checkout1234", "../re")
		}, "repo.coven/T-1", ""},
		"hidden files": {"", func(t *testing.T, root string) {
			write(t, root+".coven/.trash-x/notes", "mine")
		}, "repo/.coven/worktrees/T-1", ""},
		"writable for all": {"", func(t *testing.T, root string) {
			must(t, os.Mkdir(root+".coven", 0o700))
			must(t, os.Chmod(root+".coven", 0o777))
		}, "repo/.coven/worktrees/T-1", ""},
		"the checkout":          {"../{repo}/{task}", nil, "", "leads into the checkout, or contains it"},
		"the git directory":     {"../repo/.git/{task}", nil, "", "leads into the checkout, or contains it"},
		"in coven's directory":  {"../repo/.coven/{task}", nil, "", "leads into the checkout, or contains it"},
		"above by its own name": {"../../{repo}.up/{task}", nil, "../repo.up/T-1", ""},
		"a link to the checkout": {"../to/{repo}/{task}", func(t *testing.T, root string) {
			must(t, os.Symlink(filepath.Dir(root), filepath.Join(filepath.Dir(root), "to")))
		}, "", "leads into the checkout, or contains it"},
		"other files in the named directory": {"../trees/{repo}/{task}", func(t *testing.T, root string) {
			write(t, filepath.Join(filepath.Dir(root), "trees/repo/notes"), "mine")
		}, "", "trees/repo contains other files"},
		"a named link": {"../trees/{repo}/{task}", func(t *testing.T, root string) {
			must(t, os.MkdirAll(filepath.Join(filepath.Dir(root), "trees"), 0o755))
			must(t, os.Symlink(t.TempDir(), filepath.Join(filepath.Dir(root), "trees/repo")))
		}, "", "trees/repo is not a directory"},
	} {
		t.Run(name, func(t *testing.T) {
			parent := filepath.Join(value[string](t)(filepath.EvalSymlinks(t.TempDir())), "parent")
			root := filepath.Join(parent, "repo")
			must(t, os.Mkdir(parent, 0o755))
			must(t, os.Rename(sample(t).Root, root))
			if c.plant != nil {
				c.plant(t, root)
			}
			r := value[*repo.Repo](t)(repo.Open(t.Context(), root))
			r.WorktreeDir = c.template
			w, err := Add(t.Context(), r, AddRequest{TaskID: "T-1", Base: "main"})
			if c.err != "" {
				wantIs(t, err, repo.ErrPlace)
				equal(t, "says why", strings.Contains(err.Error(), c.err), true)
				equal(t, "stale", stales(t, r), "")
				return
			}
			must(t, err)
			equal(t, "path", w.Path, filepath.Join(parent, c.want))
			for _, dir := range []string{w.Path, filepath.Join(w.Path, "dir", "deep")} {
				here := value[*repo.Worktree](t)(r.Here(t.Context(), dir))
				equal(t, "task here", here.TaskID, "T-1")
				write(t, filepath.Join(w.Path, ".git"), "gitdir: "+filepath.Join(w.Path, "evil")+"\n")
				opened := value[*repo.Repo](t)(repo.Open(t.Context(), dir))
				equal(t, "root", opened.Root, root)
			}
			other := value[*repo.Repo](t)(repo.Open(t.Context(), root)) // with other settings
			other.WorktreeDir = "../elsewhere/{repo}/{task}"
			equal(t, "found", value[*repo.Worktree](t)(other.Find(t.Context(), "T-1")).Path, w.Path)
			equal(t, "listed", value[[]Info](t)(List(t.Context(), other))[0].Path, w.Path)
			value[string](t)(Remove(t.Context(), w, RemoveRequest{}))
			equal(t, "stale", stales(t, r), "")
			equal(t, "left", exists(w.Path), false)
		})
	}
}

// The pool of the main checkout moves to the place beside it.
func TestPoolMovesToThePlace(t *testing.T) {
	r := pooled(t)
	r.WorktreeDir = ".coven/worktrees/{task}"
	landOne := func(r *repo.Repo, task string) string {
		w := add(t, r, task)
		write(t, filepath.Join(w.Path, task), "x")
		landAndLeave(t, r, w)
		return w.Path
	}
	landOne(r, "one")
	now := value[*repo.Repo](t)(repo.Open(t.Context(), r.Root))
	now.Pool = r.Pool
	landOne(now, "two")
	equal(t, "pool inside", exists(filepath.Join(r.Root, ".coven/worktrees/.pool")), false)
	files := value[[]string](t)(filepath.Glob(r.Root + ".coven/.pool/*/one"))
	equal(t, "files of the first task that the second reused", len(files), 1)
}

// A repository that takes the path of another one does not take its worktrees, and the other one keeps them.
func TestPlaceOfARenamedCheckout(t *testing.T) {
	parent := value[string](t)(filepath.EvalSymlinks(t.TempDir()))
	root, renamed := filepath.Join(parent, "repo"), filepath.Join(parent, "renamed")
	must(t, os.Rename(sample(t).Root, root))
	before := value[*repo.Repo](t)(repo.Open(t.Context(), root))
	w := add(t, before, "T-1")
	write(t, filepath.Join(w.Path, "work"), "x")
	must(t, os.Rename(root, renamed))
	must(t, os.Rename(sample(t).Root, root))
	now := value[*repo.Repo](t)(repo.Open(t.Context(), root))
	equal(t, "new worktree", add(t, now, "T-1").Path, filepath.Join(root, ".coven/worktrees/T-1"))
	equal(t, "stale", stales(t, now), "")
	moved := value[*repo.Repo](t)(repo.Open(t.Context(), renamed))
	equal(t, "the other's", value[*repo.Worktree](t)(moved.Find(t.Context(), "T-1")).Path, w.Path)
	equal(t, "its next", add(t, moved, "T-2").Path, filepath.Join(parent, "renamed.coven/T-2"))
}

// A directory that another user has made does not lead to a checkout.
func TestPlaceOfAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give files away")
	}
	parent := value[string](t)(filepath.EvalSymlinks(t.TempDir()))
	evil, mine := filepath.Join(parent, "evil"), filepath.Join(parent, "mine")
	must(t, os.Rename(sample(t).Root, evil))
	must(t, os.Rename(sample(t).Root, mine))
	r := value[*repo.Repo](t)(repo.Open(t.Context(), evil))
	must(t, r.EnsurePlace())
	must(t, r.WriteRecord("T", repo.Record{Task: "T", Dir: "../mine", Ready: true}))
	must(t, os.Rename(filepath.Join(evil+".coven", ".checkout"), filepath.Join(parent, ".checkout")))
	write(t, filepath.Join(parent, ".checkout"), "evil\nid\n")
	equal(t, "root by a file of the user", value[*repo.Repo](t)(repo.Open(t.Context(), mine)).Root, evil)
	must(t, os.Lchown(filepath.Join(parent, ".checkout"), 12345, 12345))
	equal(t, "root", value[*repo.Repo](t)(repo.Open(t.Context(), mine)).Root, mine)
}

// A copy of a repository leaves the worktrees of the original alone, and so does the original those of the copy.
func TestPlaceOfACopy(t *testing.T) {
	parent := value[string](t)(filepath.EvalSymlinks(t.TempDir()))
	root, copied := filepath.Join(parent, "repo"), filepath.Join(parent, "copy")
	must(t, os.Rename(sample(t).Root, root))
	original := value[*repo.Repo](t)(repo.Open(t.Context(), root))
	w := add(t, original, "T-1")
	write(t, filepath.Join(w.Path, "work"), "x")
	must(t, exec.Command("cp", "-a", root, copied).Run())
	other := value[*repo.Repo](t)(repo.Open(t.Context(), copied))
	equal(t, "path in the copy", other.WorktreePath("T-1"), filepath.Join(copied+".coven", "T-1"))
	for _, s := range value[[]Stale](t)(FindStale(t.Context(), other, nobody)) {
		_, _ = Clear(t.Context(), other, s)
	}
	equal(t, "work", read(t, filepath.Join(w.Path, "work")), "x")
	equal(t, "new in the copy", add(t, other, "T-2").Path, filepath.Join(copied+".coven", "T-2"))
	must(t, os.RemoveAll(root)) // the copy is the only one now
	equal(t, "path in the moved repository", other.WorktreePath("T-1"), w.Path)
}
