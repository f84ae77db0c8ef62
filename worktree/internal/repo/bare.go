package repo

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/file/regularfile"
	"github.com/coven-run/coven/internal/text/shellword"
	"github.com/coven-run/coven/worktree/internal/file"
	"github.com/coven-run/coven/worktree/internal/git"
	"github.com/coven-run/coven/worktree/internal/names"
)

// A BareError means that the directory is a bare repository, not one of its checkouts.
type BareError struct {
	Dir       string
	Checkouts []string // checkouts in which coven can run
}

func (e *BareError) Error() string {
	if len(e.Checkouts) == 0 {
		return e.Dir + " is a bare repository without a checkout: make one with git worktree add"
	}
	return fmt.Sprintf("%s is a bare repository: run coven in a checkout of it, for example %s", e.Dir, e.Checkouts[0])
}

// Is reports whether target is ErrBare.
func (e *BareError) Is(target error) bool { return target == ErrBare }

// CommandExit returns exit.Usage.
func (e *BareError) CommandExit() int { return exit.Usage }

// NextCommand returns a command that creates a checkout.
func (e *BareError) NextCommand() string { return "git clone . ../checkout" }

func bareError(at git.Location) error {
	r := &Repo{GitDir: at.Shared, Bare: true}
	tops, err := r.Checkouts()
	tops = slices.DeleteFunc(tops, func(top string) bool { return strings.Contains(top, "/"+names.WorktreesDir+"/") || placedIn(top) != "" })
	return errors.Join(&BareError{Dir: at.Shared, Checkouts: tops}, err)
}

// bareRoot returns the checkout that serves as the main checkout of a bare repository, for coven's
// configuration, sessions and worktrees. It is the first checkout in which coven was run, even if that has
// been moved, or the current checkout if that no longer exists. Its path and its name in the git directory
// are stored in a file.
func (r *Repo) bareRoot() (string, error) {
	tops, err := r.Checkouts()
	if err != nil {
		return "", err
	}
	path := r.StatePath("root")
	raw, err := file.Read(path, maxRootFile)
	if errors.Is(err, fs.ErrNotExist) {
		return r.firstRoot(path)
	}
	if err != nil {
		return "", fmt.Errorf("read coven's main checkout: %w; to use the current checkout instead: rm %s", err, shellword.Quote(path))
	}
	known, admin, _ := strings.Cut(strings.TrimSuffix(string(raw), "\n"), "\n")
	if slices.Contains(tops, known) {
		return known, nil
	}
	root, name := r.Checkout, filepath.Base(r.CheckoutGitDir)
	if filepath.IsLocal(admin) && slices.Contains(tops, r.AdminPath(admin)) {
		root, name = r.AdminPath(admin), admin
	}
	return root, regularfile.Replace(path, rootRecord(root, name), 0o644)
}

// firstRoot makes the current checkout the root, unless another coven process has just chosen one.
func (r *Repo) firstRoot(path string) (string, error) {
	if err := os.MkdirAll(r.StatePath(), 0o755); err != nil {
		return "", err
	}
	made, err := os.CreateTemp(r.StatePath(), ".root-*")
	if err != nil {
		return "", err
	}
	defer os.Remove(made.Name()) //nolint:errcheck // path is another link to it
	_, err = made.Write(rootRecord(r.Checkout, filepath.Base(r.CheckoutGitDir)))
	if err = errors.Join(err, made.Close()); err != nil {
		return "", err
	}
	if err := os.Link(made.Name(), path); errors.Is(err, fs.ErrExist) {
		return r.bareRoot()
	} else if err != nil {
		return "", err
	}
	return r.Checkout, nil
}

func rootRecord(root, admin string) []byte { return []byte(root + "\n" + admin + "\n") }

// maxRootFile is larger than any path, in bytes.
const maxRootFile = 64 << 10

// RootGit returns the git directory and work tree of Root.
func (r *Repo) RootGit() git.Repo {
	g := r.Git()
	if !r.Bare {
		return g
	}
	admins, err := r.Admins()
	if err != nil {
		return g
	}
	for _, admin := range admins {
		if r.AdminPath(admin) == r.Root {
			g.Dir = filepath.Join(r.GitDir, "worktrees", admin)
		}
	}
	return g
}
