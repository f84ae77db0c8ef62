package isolation

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coven-run/coven/internal/text/lazyregexp"
	"github.com/coven-run/coven/worktree/internal/content"
	"github.com/coven-run/coven/worktree/internal/file"
	"github.com/coven-run/coven/worktree/internal/git"
	"github.com/coven-run/coven/worktree/internal/object"
	"github.com/coven-run/coven/worktree/internal/repo"
	"github.com/coven-run/coven/worktree/internal/submodule"
)

// replacedPrefix is the prefix of directories with files that were set aside.
const replacedPrefix = "replaced-"

// disarm removes everything that would make git in the worktree run a program of the agent's: settings and hooks in
// the worktree's git directory and in those of its submodules, and commands of an unfinished rebase. It also removes
// links through which git would write elsewhere. Everything removed is set aside.
func disarm(ctx context.Context, w *repo.Worktree) error {
	if err := disarmDir(ctx, w, w.Admin); err != nil {
		return err
	}
	if err := errors.Join(restrictWorktreeConfig(ctx, w), clearCommands(w, w.Admin)); err != nil {
		return err
	}
	links, err := gitlinks(ctx, w)
	if err != nil {
		return err
	}
	for _, link := range links {
		if !filepath.IsLocal(link) || file.BeyondLink(w.Path, link) {
			continue // git does not follow links to submodules, and the target may be the user's
		}
		if err := disarmBelow(ctx, w, filepath.Join(w.Path, filepath.FromSlash(link))); err != nil {
			return err
		}
	}
	return nil
}

// worktreeConfig is the name of the file with the settings of one worktree.
const worktreeConfig = "config.worktree"

// disarmDir removes links and pipes below a directory, and then disarms the git directories there. It skips the private
// common directory of the worktree, which git no longer uses.
func disarmDir(ctx context.Context, w *repo.Worktree, top string) error {
	var found []string
	err := filepath.WalkDir(top, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case path == PrivatePath(w), filepath.Dir(path) == w.Admin && strings.HasPrefix(entry.Name(), replacedPrefix):
			return fs.SkipDir
		case entry.IsDir() && path != w.Admin:
			found = append(found, path)
		}
		return makePlain(w, path, entry)
	})
	if err != nil {
		return err
	}
	for _, dir := range found {
		if isGitDir(dir) {
			err = errors.Join(err, disarmGitDir(ctx, w, dir))
		}
	}
	return err
}

// makePlain restores the permissions of a directory. It sets aside anything that is neither a directory nor a file, nor one
// of coven's links to the state of filters.
func makePlain(w *repo.Worktree, path string, entry fs.DirEntry) error {
	info, err := entry.Info()
	switch {
	case err != nil:
		return err
	case info.IsDir():
		return restorePermissions(path, info)
	case info.Mode().IsRegular(), filepath.Dir(path) == w.Admin && IsFilterState(w, path):
		return nil
	}
	return SetAsidePrivate(w, path)
}

// isGitDir reports whether git could take a directory for a git directory.
func isGitDir(dir string) bool {
	has := func(name string) bool { return file.Exists(filepath.Join(dir, name)) }
	return has("HEAD") && (has("objects") && has("refs") || has("commondir"))
}

// disarmGitDir disarms the git directory of a submodule or of another repository in the worktree.
func disarmGitDir(ctx context.Context, w *repo.Worktree, dir string) error {
	for _, name := range []string{"commondir", worktreeConfig} {
		if err := SetAsidePrivate(w, filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	hooks := filepath.Join(dir, "hooks")
	entries, _ := os.ReadDir(hooks) // it may not exist
	if slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return !strings.HasSuffix(e.Name(), ".sample") }) {
		if err := SetAsidePrivate(w, hooks); err != nil {
			return err
		}
	}
	settings, err := readConfig(ctx, w, filepath.Join(dir, "config"))
	if err != nil {
		return err
	}
	return errors.Join(clearCommands(w, dir), settings.restrict(w, func(key, value string) bool {
		return repositoryKeys.MatchString(key) && (key != "core.worktree" || inWorktree(w, dir, value))
	}))
}

// disarmBelow disarms the repositories below a directory in the worktree.
func disarmBelow(ctx context.Context, w *repo.Worktree, top string) error {
	info, err := os.Lstat(top)
	if err != nil || !info.IsDir() {
		return nil //nolint:nilerr // git finds no repository there either
	}
	return filepath.WalkDir(top, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if err := makePlain(w, path, entry); err != nil {
				return err
			}
		}
		switch {
		case !file.IsGitDir(entry.Name()):
			return nil
		case entry.IsDir():
			if err := disarmDir(ctx, w, path); err != nil {
				return err
			}
			return fs.SkipDir
		case entry.Type().IsRegular() && inModules(w, filepath.Dir(path)):
			return nil // disarmed with the worktree's git directory
		}
		return SetAsidePrivate(w, path)
	})
}

// inModules reports whether the git directory of the submodule at path is in the worktree's git directory.
func inModules(w *repo.Worktree, path string) bool {
	dir, ok := submodule.Dir(path)
	if !ok {
		return false
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return false
	}
	modules, err := filepath.EvalSymlinks(filepath.Join(w.Admin, submodule.ModulesDir))
	return err == nil && strings.HasPrefix(real, modules+string(filepath.Separator))
}

// gitlinks lists the paths at which git looks for repositories in the worktree: the submodules in its index, and those
// in the last commit, which `git reset` would bring into the index.
func gitlinks(ctx context.Context, w *repo.Worktree) ([]string, error) {
	links, err := submodule.Links(ctx, w)
	if err != nil || !mayHaveLinks(w) {
		return links, err
	}
	g := w.Git()
	g.Dir, g.Store = w.Admin, nil // a split index is in several files
	fields, err := g.Fields(ctx, "ls-files", "-z", "-s")
	if err != nil {
		return links, SetAsidePrivate(w, filepath.Join(w.Admin, "index")) // git may fail for another reason next time
	}
	for _, field := range fields {
		if e, err := content.IndexEntry(field); err == nil && e.Mode == object.ModeSubmodule {
			links = append(links, e.Path)
		}
	}
	return links, nil
}

// mayHaveLinks reports whether the worktree's index may contain a submodule. It only looks for the bytes of the mode
// of one, because git would take longer.
func mayHaveLinks(w *repo.Worktree) bool {
	parts, _ := filepath.Glob(filepath.Join(w.Admin, "sharedindex.*")) // the pattern is valid
	for _, part := range append(parts, filepath.Join(w.Admin, "index")) {
		raw, err := file.Read(part, maxIndex)
		if !errors.Is(err, fs.ErrNotExist) && (err != nil || bytes.Contains(raw, []byte{0, 0, 0xe0, 0})) {
			return true
		}
	}
	return false
}

const maxIndex = 256 << 20

// Settings that name no program. Those of a worktree are the ones that package sparse and `git sparse-checkout` write.
var (
	worktreeKeys   = lazyregexp.New(`^(core\.sparsecheckout(cone)?|index\.sparse)$`)
	repositoryKeys = lazyregexp.New(`^(core\.(repositoryformatversion|filemode|bare|logallrefupdates|ignorecase|precomposeunicode|symlinks|` +
		`autocrlf|eol|safecrlf|sparsecheckout|sparsecheckoutcone|worktree)|index\.sparse|extensions\.(objectformat|partialclone)|` +
		`remote\..*\.(url|pushurl|fetch|push|tagopt|prune|mirror|promisor|partialclonefilter)|branch\..*\.(remote|merge|rebase)|` +
		`submodule\..*\.(url|active|path|branch|ignore)|user\.(name|email))$`)
)

// maxConfig limits the size of the files of git that are read.
const maxConfig = 1 << 20

// A config is the content of a configuration file.
type config struct {
	path     string
	damaged  bool     // git cannot parse the file
	settings []string // as `git config -z --list` prints them
}

// readConfig reads a configuration file, which need not exist.
func readConfig(ctx context.Context, w *repo.Worktree, path string) (config, error) {
	raw, err := file.Read(path, maxConfig)
	if errors.Is(err, fs.ErrNotExist) {
		return config{path: path}, nil
	}
	if err != nil {
		return config{path: path, damaged: true}, nil //nolint:nilerr // it is not repaired, but replaced
	}
	out, err := w.Repo.Git().Feed(ctx, raw, "config", "-z", "--no-includes", "--file", "-", "--list")
	return config{path, err != nil, git.Split(out)}, context.Cause(ctx)
}

// restrict removes the settings that are not allowed. From a damaged file, it removes all.
func (c config) restrict(w *repo.Worktree, allowed func(key, value string) bool) error {
	kept := slices.DeleteFunc(slices.Clone(c.settings), func(setting string) bool {
		key, value, _ := strings.Cut(setting, "\n")
		return !allowed(key, value)
	})
	if !c.damaged && len(kept) == len(c.settings) {
		return nil
	}
	if err := SetAsidePrivate(w, c.path); err != nil {
		return err
	}
	return file.WriteNoSync(c.path, []byte(git.ConfigText(kept)))
}

// restrictWorktreeConfig restricts the settings of the worktree to the sparse checkout, and to the settings of the main
// checkout, which `git worktree add` copies.
func restrictWorktreeConfig(ctx context.Context, w *repo.Worktree) error {
	own, err := readConfig(ctx, w, filepath.Join(w.Admin, worktreeConfig))
	if err != nil || !own.damaged && len(own.settings) == 0 {
		return err
	}
	users, err := readConfig(ctx, w, filepath.Join(w.Repo.GitDir, worktreeConfig))
	if err != nil {
		return err
	}
	return own.restrict(w, func(key, value string) bool {
		return worktreeKeys.MatchString(key) || slices.Contains(users.settings, key+"\n"+value)
	})
}

// inWorktree reports whether a path, relative to dir, is in the worktree.
func inWorktree(w *repo.Worktree, dir, path string) bool {
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	real, err := filepath.EvalSymlinks(path)
	top, topErr := filepath.EvalSymlinks(w.Path)
	return err == nil && topErr == nil && strings.HasPrefix(real, top+string(filepath.Separator))
}

// commandLine matches a line that runs a command in the list of a rebase.
var commandLine = lazyregexp.New(`(?m)^[ \t]*(exec|x)([ \t\r].*)?$`)

// clearCommands replaces the commands in the list of an unfinished rebase by no-ops.
func clearCommands(w *repo.Worktree, dir string) error {
	path := filepath.Join(dir, "rebase-merge", "git-rebase-todo")
	raw, err := file.Read(path, maxConfig)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !commandLine.Match(raw) {
		return nil
	}
	if asideErr := SetAsidePrivate(w, path); err != nil || asideErr != nil {
		return asideErr
	}
	return file.WriteNoSync(path, []byte(commandLine.ReplaceAllString(string(raw), "noop")))
}
