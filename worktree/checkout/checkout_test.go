package checkout

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coven-run/coven/worktree/internal/git"
)

// TestMain isolates the environment, or runs as a process that moves a checkout.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "actor" {
		os.Exit(actor(os.Args[2:]))
	}
	os.Exit(sealed(m))
}

func sealed(m *testing.M) int {
	home, err := os.MkdirTemp("", "coven-home-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(home) }()
	for key, value := range map[string]string{
		"HOME": home, "XDG_CONFIG_HOME": home, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1",
		"GIT_AUTHOR_NAME": "Ada", "GIT_AUTHOR_EMAIL": "ada@example.com",
		"GIT_COMMITTER_NAME": "Ada", "GIT_COMMITTER_EMAIL": "ada@example.com",
		"GIT_AUTHOR_DATE": "2026-01-02T03:04:05Z", "GIT_COMMITTER_DATE": "2026-01-02T03:04:05Z",
	} {
		if err := os.Setenv(key, value); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return m.Run()
}

// A repo is a checkout that a test changes with git.
type repo struct {
	t   testing.TB
	dir string
}

func newRepo(t testing.TB, dir string, initArgs ...string) repo {
	t.Helper()
	r := repo{t, dir}
	r.ok(os.MkdirAll(dir, 0o755))
	r.git(append([]string{"init", "-q", "-b", "main"}, initArgs...)...)
	return r
}

func (r repo) ok(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r repo) git(args ...string) string {
	r.t.Helper()
	out, err := r.try(args...)
	if err != nil {
		r.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSuffix(out, "\n")
}

func (r repo) try(args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir = r.dir
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (r repo) sh(script string) {
	r.t.Helper()
	cmd := exec.Command("sh", "-ec", script)
	cmd.Dir = r.dir
	if out, err := cmd.CombinedOutput(); err != nil {
		r.t.Fatalf("%s: %v\n%s", script, err, out)
	}
}

// commit returns the commit that a script results in.
func (r repo) commit(script string) string {
	r.t.Helper()
	r.sh(script)
	r.git("add", "-A")
	r.git("commit", "-qm", "c", "--allow-empty")
	return r.git("rev-parse", "HEAD")
}

// checkout returns the checkout for coven. The test fails if anything is rescued.
func (r repo) checkout() *Checkout {
	return &Checkout{
		Git: git.Repo{Dir: r.gitDir(), WorkTree: r.dir}, Ref: "refs/heads/main", Task: "T",
		State: filepath.Join(r.gitDir(), "coven", "moves", "x"),
		Await: func(context.Context) error { return errors.New("the index is locked") },
		Rescue: func(_ context.Context, files map[string]string) error {
			return fmt.Errorf("to be rescued: %v", files)
		},
	}
}

func (r repo) gitDir() string { return r.git("rev-parse", "--absolute-git-dir") }

// look returns everything that is visible of the checkout: index, status, files.
func (r repo) look() string {
	r.t.Helper()
	status := r.git("--no-optional-locks", "status", "--porcelain", "--ignored", "-uall")
	return r.git("ls-files", "-s", "-t") + "\n" + status + "\n" + r.files()
}

func (r repo) files() string {
	r.t.Helper()
	var out strings.Builder
	err := filepath.WalkDir(r.dir, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || file == r.dir {
			return err
		}
		if file == filepath.Join(r.dir, ".git") {
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		is, err := fingerprintOf(file)
		if !entry.IsDir() {
			fmt.Fprintf(&out, "%s %s\n", strings.TrimPrefix(file, r.dir+"/"), is)
		} else if is == emptyDir() {
			fmt.Fprintf(&out, "%s/\n", strings.TrimPrefix(file, r.dir+"/"))
		}
		return err
	})
	r.ok(err)
	return out.String()
}

// clean fails if anything of a move is left.
func (r repo) clean() {
	r.t.Helper()
	left, err := filepath.Glob(filepath.Join(r.gitDir(), "coven", "moves", "*"))
	r.ok(err)
	top, err := filepath.Glob(filepath.Join(r.dir, ".coven-*"))
	r.ok(err)
	if all := append(left, top...); len(all) > 0 {
		r.t.Errorf("left behind: %v", all)
	}
	if _, err := os.Lstat(filepath.Join(r.gitDir(), "index.lock")); err == nil {
		r.t.Error("the index is still locked")
	}
}

// shapes are changes of a repository: the commits OLD and NEW, and the user's changes to the checkout of
// OLD.
var shapes = map[string]struct {
	config   string // shell, before creating OLD
	old, new string
	person   string
}{
	"change":          {"", "echo 1 >a; echo 1 >b", "echo 2 >a", ""},
	"add":             {"", "echo 1 >a", "echo 2 >b; mkdir -p c/d; echo 3 >c/d/e", ""},
	"delete":          {"", "mkdir -p c/d; echo 1 >a; echo 1 >c/d/e", "rm -r c", ""},
	"rename":          {"", "echo 1 >a; echo x >keep", "mkdir d; git mv a d/b", ""},
	"executable":      {"", "echo 1 >a; echo 1 >b; chmod +x b", "chmod +x a; chmod -x b", ""},
	"link to file":    {"", "ln -s x a; echo 1 >b", "rm a; echo 2 >a; rm b; ln -s a b", ""},
	"link":            {"", "ln -s x a", "ln -sf y a; ln -s nowhere c", ""},
	"directory":       {"", "mkdir a; echo 1 >a/b; echo 1 >a/c", "rm -r a; echo 2 >a", ""},
	"to directory":    {"", "echo 1 >a; ln -s a l", "rm a l; mkdir -p a/b l; echo 2 >a/b/c; echo 2 >a/d; echo 3 >l/x", ""},
	"deep directory":  {"", "mkdir -p p/a/b; echo 1 >p/a/b/c; echo 1 >p/z", "rm -r p/a; echo 2 >p/a; echo 2 >p/z", ""},
	"empty directory": {"", "echo 1 >a", "echo 2 >d", "mkdir -p d/e"},
	"odd names":       {"", "printf 1 >\"$(printf 'a\\nb')\"; printf 1 >\"$(printf '\\377x')\"; echo 1 >'ü %2f'", "printf 2 >\"$(printf 'a\\nb')\"; printf 2 >\"$(printf '\\377x')\"; echo 2 >'ü %2f'; echo 2 >'q\"r'", ""},
	"empty files":     {"", ": >a; echo 1 >b", "echo 2 >a; : >b", ""},
	"large":           {"", "head -c 3000000 /dev/zero >a", "head -c 3000001 /dev/zero >a", ""},

	"dirty elsewhere":     {"", "echo 1 >a; echo 1 >b; echo 1 >c", "echo 2 >a", "echo mine >b; echo mine >n; chmod +x c"},
	"staged elsewhere":    {"", "echo 1 >a; echo 1 >b; echo 1 >c", "echo 2 >a", "echo s >b; git add b; echo d >b; git rm -q --cached c; echo n >n; git add n"},
	"deleted elsewhere":   {"", "echo 1 >a; echo 1 >b", "echo 2 >a", "rm b"},
	"deleted by both":     {"", "echo 1 >a; echo 1 >b", "rm b", "rm b"},
	"staged by both":      {"", "echo 1 >a; echo 1 >b", "echo 2 >a; rm b", "echo 2 >a; git add a; git rm -q b"},
	"intent to add":       {"", "echo 1 >a", "echo 2 >a", "echo n >n; git add -N n"},
	"touched":             {"", "echo 1 >a; echo 1 >b", "echo 2 >a", "touch -d '2001-01-01' a b"},
	"untracked beside":    {"", "mkdir d; echo 1 >d/a", "rm -r d; echo 2 >z", "echo mine >d/mine"},
	"private permissions": {"", "echo 1 >a; echo 1 >b", "echo 2 >a", "chmod 600 a b"},
	"assumed unchanged":   {"", "echo 1 >a; echo 1 >b", "echo 2 >a", "git update-index --assume-unchanged b; echo x >b"},

	"split index":       {"git config core.splitIndex true", "echo 1 >a; echo 1 >b; mkdir d; echo 1 >d/c", "echo 2 >a; rm b; echo 3 >n", ""},
	"split by hand":     {"", "echo 1 >a; echo 1 >b", "echo 2 >a; rm b; echo 3 >n", "git update-index --split-index"},
	"index version 4":   {"git config index.version 4", "echo 1 >a; echo 1 >abc; mkdir abd; echo 1 >abd/x", "echo 2 >abc; echo 2 >abd/x", ""},
	"untracked cache":   {"git config core.untrackedCache true", "echo 1 >a", "echo 2 >a; echo 3 >b", "echo mine >n; git status -s >&2"},
	"ignore case":       {"git config core.ignoreCase true", "echo 1 >a; echo 1 >Readme", "git mv -f Readme README; echo 2 >README", ""},
	"file mode ignored": {"git config core.fileMode false", "echo 1 >a; echo 1 >b", "echo 2 >a; git update-index --chmod=+x b", "git checkout -q .; chmod +x a"},
	"no links":          {"git config core.symlinks false", "echo 1 >a", "git update-index --add --cacheinfo 120000,$(printf nowhere | git hash-object -w --stdin),l; printf nowhere >l; echo 2 >a", ""},

	"end of line": {"", "printf '*.txt text eol=lf\\n' >.gitattributes; printf 'a\\n' >a.txt; printf 'b\\n' >b.txt", "printf '*.txt text eol=crlf\\n' >.gitattributes; printf 'c\\n' >a.txt; printf 'c\\n' >n.txt", ""},
	"end of line that never was": {
		"git config core.autocrlf false", "printf 'a\\r\\n' >a.txt; echo 1 >b",
		"printf 'b\\r\\n' >a.txt; touch -d 2001-01-01 a.txt; git add a.txt; printf '*.txt text\\n' >.gitattributes", "",
	},
	"encoding": {"", "echo 1 >a", "printf '*.u working-tree-encoding=UTF-16LE\\n' >.gitattributes; printf 'h\\000i\\000' >x.u", ""},
	"filter": {
		"git config filter.up.smudge 'tr a-z A-Z'; git config filter.up.clean 'tr A-Z a-z'",
		"echo one >a.up", "echo '*.up filter=up' >.gitattributes; echo TWO >a.up; echo THREE >b.up", "",
	},
	"filter here": { // a program that exists only in the checkout
		"git config filter.x.smudge './tool smudge %f'; git config filter.x.clean './tool clean %f'",
		"printf '#!/bin/sh\\ntest -n \"$GIT_DIR\" -o -d .git\\ncat\\n' >tool; chmod +x tool; echo '*.x filter=x' >.gitattributes; echo 1 >a.x",
		"echo 2 >a.x; echo 3 >b.x", "",
	},

	"submodule":           {"", "echo 1 >a", "git update-index --add --cacheinfo 160000,1111111111111111111111111111111111111111,sub; mkdir -p sub", ""},
	"submodule moves":     {"", "git update-index --add --cacheinfo 160000,1111111111111111111111111111111111111111,sub; mkdir -p sub", "git update-index --cacheinfo 160000,2222222222222222222222222222222222222222,sub", ""},
	"submodule goes":      {"", "git update-index --add --cacheinfo 160000,1111111111111111111111111111111111111111,sub; mkdir -p sub; echo 1 >a", "git rm -q --cached sub; rmdir sub", ""},
	"submodule with work": {"", "git update-index --add --cacheinfo 160000,1111111111111111111111111111111111111111,sub; mkdir -p sub; echo 1 >a", "git update-index --cacheinfo 160000,2222222222222222222222222222222222222222,sub; echo 2 >a", "git init -q sub; echo mine >sub/mine"},
	"file to submodule":   {"", "echo 1 >a; echo 1 >sub", "git rm -q --cached sub; rm sub; git update-index --add --cacheinfo 160000,1111111111111111111111111111111111111111,sub; mkdir sub", ""},
	"submodule to file":   {"", "git update-index --add --cacheinfo 160000,1111111111111111111111111111111111111111,sub; mkdir -p sub", "git rm -q --cached sub; rmdir sub; echo 2 >sub", ""},

	"sparse": {"", "mkdir in out; echo 1 >in/a; echo 1 >out/a; echo 1 >top", "echo 2 >in/a; echo 2 >out/a; echo 2 >out/n; echo 2 >in/n; rm top", "git sparse-checkout set in"},
	"sparse index": {
		"", "mkdir in out; echo 1 >in/a; echo 1 >out/a; echo 1 >out/b; echo 1 >top", "echo 2 >in/a; echo 2 >out/a; echo 2 >out/n",
		"git sparse-checkout set --cone --sparse-index in; git config advice.sparseIndexExpanded false",
	},
}

// prepare creates a repository and makes the user's changes to the checkout of OLD. The result is always
// the same, so that two repositories can be compared.
func prepare(t testing.TB, dir, config, old, new, person string) (r repo, from, to string) {
	t.Helper()
	r = newRepo(t, dir)
	if config != "" {
		r.sh(config)
	}
	from = r.commit(old)
	to = r.commit(new)
	r.git("reset", "-q", "--hard", from)
	r.sh("git clean -qffdx")
	// Make the files older than the index, so that their timestamps are significant. The user's changes are
	// newer.
	r.age("1 hour ago")
	r.sh("git update-index -q --refresh || true")
	if person != "" {
		r.sh(person)
	}
	return r, from, to
}

// A move has the same result as `git read-tree -m -u`, and leaves nothing behind. After Undo, everything is
// as before, including timestamps.
func TestAdvanceIsReadTree(t *testing.T) {
	for what, s := range shapes {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			r, from, to := prepare(t, filepath.Join(t.TempDir(), "r"), s.config, s.old, s.new, s.person)
			other, _, _ := prepare(t, filepath.Join(t.TempDir(), "r"), s.config, s.old, s.new, s.person)
			_, _ = other.try("update-index", "-q", "--refresh")
			other.git("read-tree", "-m", "-u", from, to)
			other.git("update-ref", "refs/heads/main", to)
			touched := strings.Fields(r.git("diff-files", "--name-only"))
			for _, how := range hows() {
				before, stamps := r.look(), r.stamps()
				c := r.checkout()
				how.change(c)
				m, err := c.Advance(t.Context(), from, to)
				if refused(t, how.name, err) {
					continue
				}
				r.ok(m.Undo(t.Context()))
				same(t, how.name+": undone", r.look(), before)
				same(t, how.name+": stamps", r.stamps(), stamps)
				r.clean()
			}
			r.settle(from, to)
			if wrong := r.wrongStamps(other, touched, from, to); len(wrong) > 0 {
				t.Errorf("time stamps in the index are not those of %s", wrong)
			}
			// git status must read all files: whether it reads one that is as old as the index is chance.
			r.age("30 minutes ago")
			other.age("30 minutes ago")
			same(t, "moved", r.look(), other.look())
			r.clean()
		})
	}
}

// wrongStamps returns the files whose timestamps in the index are wrong after a move, but correct after
// git's own move, which refreshed all of them. A move does not refresh a file that it does not change and
// that was touched before.
func (r repo) wrongStamps(other repo, touched []string, from, to string) []string {
	r.t.Helper()
	moved, right := strings.Fields(r.git("diff", "--name-only", "--no-renames", from, to)), strings.Fields(other.git("diff-files", "--name-only"))
	stale := strings.Fields(r.git("diff-files", "--name-only"))
	_, _ = r.try("update-index", "-q", "--refresh")
	differ := strings.Fields(r.git("diff-files", "--name-only")) // in their contents
	return slices.DeleteFunc(stale, func(name string) bool {
		return slices.Contains(differ, name) || slices.Contains(right, name) || slices.Contains(touched, name) && !slices.Contains(moved, name)
	})
}

// age sets the modification times of all files to a date.
func (r repo) age(date string) {
	r.t.Helper()
	r.sh("find . -path ./.git -prune -o ! -type d -exec touch -h -d '" + date + "' {} +")
}

// hows returns the ways in which a checkout can be moved.
func hows() []struct {
	name   string
	change func(*Checkout)
} {
	return []struct {
		name   string
		change func(*Checkout)
	}{
		{"here", func(*Checkout) {}},
		{"staged at the top", func(c *Checkout) { c.stageAtTop = true }},
		{"without exchange", func(c *Checkout) { c.exchange = func(_, _ place) error { return errNoExchange } }},
	}
}

// refused reports whether a move is refused because it would have to exchange a directory.
func refused(t *testing.T, how string, err error) bool {
	t.Helper()
	e, ok := errors.AsType[*Error](err)
	if ok && how == "without exchange" && strings.Contains(e.Reason, "a directory is exchanged") {
		return true
	}
	if err != nil {
		t.Fatalf("%s: %v", how, err)
	}
	return false
}

func (r repo) settle(from, to string) {
	r.t.Helper()
	m, err := r.checkout().Advance(context.Background(), from, to)
	r.ok(err)
	r.git("update-ref", "refs/heads/main", to)
	r.ok(m.Finish(context.Background()))
}

// stamps returns the modification times of all files.
func (r repo) stamps() string {
	r.t.Helper()
	var out strings.Builder
	r.ok(filepath.WalkDir(r.dir, func(file string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && entry.Name() == ".git" {
			return fs.SkipDir
		}
		if err == nil && !entry.IsDir() {
			info, err := entry.Info()
			r.ok(err)
			fmt.Fprintln(&out, file, info.ModTime().Format(time.RFC3339Nano))
		}
		return err
	}))
	return out.String()
}

func same(t testing.TB, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s:\n%s\nwant:\n%s", what, got, want)
	}
}
