package config

import (
	"errors"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/coven-run/coven/internal/text/glob"
)

// Worktree configures how the worktree of a task is prepared and removed.
type Worktree struct {
	Dir             string        `yaml:"dir" about:"where new worktrees are, as a template of {repo} and {task}; empty: ../{repo}.coven/{task} where that is possible, otherwise .coven/worktrees/{task}"`
	Branch          string        `yaml:"branch" about:"the branch of a new worktree, as a template of {user}, {task} and {slug}, which is the title of the task"`
	Base            string        `yaml:"base" oneof:"target|remote" about:"where a task starts: at the branch that it lands on, or at the upstream of that branch, which coven fetches first"`
	Setup           []string      `yaml:"setup" about:"shell commands that run in a new worktree before the first step, in order"`
	SetupTimeout    time.Duration `yaml:"setup_timeout" about:"time for all commands of setup together"`
	Teardown        []string      `yaml:"teardown" about:"shell commands that run in a worktree before coven removes it, in order"`
	TeardownTimeout time.Duration `yaml:"teardown_timeout" about:"time for all commands of teardown together"`
	Submodules      bool          `yaml:"submodules" about:"fill the submodules of a new worktree from those of the main checkout"`
	Sparse          string        `yaml:"sparse" oneof:"all|main|dirs" about:"which files a new worktree has: all, those of the main checkout, or those of sparse_dirs"`
	SparseDirs      []string      `yaml:"sparse_dirs" about:"directories that a sparse worktree has, with the files directly in the directories above"`
	PoolGB          int           `yaml:"pool_gb" about:"disk space, in GB, for the files of landed worktrees, from which later ones are made; 0: none"`
	Link            []string      `yaml:"link" about:"directories of the main checkout, such as node_modules, that a worktree shows and cannot change"`
	Keep            []string      `yaml:"keep" about:"ignored files that pass from a landed worktree to a later one: globs, such as node_modules or **/target; and caches by their variable, such as $GOCACHE"`
}

// KeptFiles returns the file globs in Keep.
func (w Worktree) KeptFiles() []string {
	return slices.DeleteFunc(slices.Clone(w.Keep), isVariable)
}

// KeptCaches returns the cache variables in Keep, without the dollar sign.
func (w Worktree) KeptCaches() (names []string) {
	for _, kept := range w.Keep {
		if name, ok := strings.CutPrefix(kept, "$"); ok {
			names = append(names, name)
		}
	}
	return names
}

func isVariable(kept string) bool { return strings.HasPrefix(kept, "$") }

// Caches returns the variables of the caches that each task has separately. Package sandbox determines their
// locations.
func Caches() []string {
	return []string{
		"XDG_CACHE_HOME", "GOCACHE", "GOMODCACHE", "npm_config_cache", "npm_config_store_dir", "PIP_CACHE_DIR",
		"CARGO_HOME", "GRADLE_USER_HOME", "MAVEN_ARGS", "NUGET_PACKAGES",
	}
}

// maxPoolGB is an arbitrary large limit.
const maxPoolGB = 1 << 20

// insideDir is the only value of worktree.dir that leads into the checkout: git ignores the directory.
const insideDir = ".coven/worktrees/{task}"

// checkWorktreeDir returns an error if a template of the directories of worktrees is invalid. Authors of the repository,
// who wrote it if theirs is set, may only name directories beside the checkout.
func checkWorktreeDir(dir string, theirs bool) error {
	rest, beside := strings.CutPrefix(dir, "../")
	parent, name := path.Split(rest)
	text := strings.NewReplacer("{repo}", "r", "{task}", "t").Replace(dir)
	switch {
	case strings.Count(dir, "{task}") != 1 || !strings.Contains(name, "{task}"):
		return errors.New("its last part does not contain {task} once")
	case strings.ContainsAny(text, "{}\x00\n\\"):
		return errors.New("it has other fields than {repo} and {task}")
	case path.Clean(text) != text || strings.HasPrefix(name, "."):
		return errors.New("it is not a clean path, or names of worktrees begin with a dot")
	case strings.HasPrefix(dir, "../{repo}/"):
		return errors.New("it leads into the checkout")
	case dir == insideDir, beside && (filepath.IsLocal(parent) || parent == ""):
		return nil
	case theirs:
		return errors.New("a repository can only name " + insideDir + " or a path that begins with ../, and is not further up")
	case !path.IsAbs(dir) && !strings.HasPrefix(dir, "~/"):
		return errors.New("it is in the checkout: begin it with ../, ~/ or /, or use " + insideDir)
	}
	return nil
}

// DefaultBranch is the default of worktree.branch.
const DefaultBranch = "coven/{task}"

// maxBranch limits the length of a template of branches. With its fields, it is the name of a file.
const maxBranch = 80

// CheckBranch returns an error if a template of the branches of tasks is invalid. git checks the branches themselves.
func CheckBranch(branch string) error {
	text := strings.NewReplacer("{user}", "u", "{task}", "t", "{slug}", "s").Replace(branch)
	switch {
	case strings.Count(branch, "{task}") != 1:
		return errors.New("it does not contain {task} once")
	case strings.ContainsAny(text, "{}"):
		return errors.New("it has other fields than {user}, {task} and {slug}")
	case path.Clean(text) != text || path.IsAbs(text) || strings.HasPrefix(text, "refs/") || strings.HasPrefix(text, "-"):
		return errors.New("it is not the name of a branch")
	case len(branch) > maxBranch:
		return errors.New("it is too long")
	}
	return nil
}

// worktree checks the section worktree. Its directories may end with a slash, as in .gitignore.
func (r reader) worktree(w *Worktree) {
	w.Link, w.SparseDirs = withoutSlashes(w.Link), withoutSlashes(w.SparseDirs)
	if at := r.at("worktree.dir"); at.Set() && w.Dir != "" {
		if err := checkWorktreeDir(w.Dir, r.file.theirs); err != nil {
			r.doc.Fail(at, "worktree.dir: "+err.Error(), "for example ../{repo}-{task}")
		}
	}
	if at := r.at("worktree.branch"); at.Set() {
		if err := CheckBranch(w.Branch); err != nil {
			r.doc.Fail(at, "worktree.branch: "+err.Error(), "for example {user}/{task}-{slug}")
		}
	}
	for key, commands := range map[string][]string{"worktree.setup": w.Setup, "worktree.teardown": w.Teardown} {
		r.each(key, commands, "a command", func(s string) bool { return strings.TrimSpace(s) != "" })
	}
	r.each("worktree.keep", w.Keep, "a glob of paths in the worktree, or one of $"+strings.Join(Caches(), ", $"), isKept)
	r.each("worktree.link", w.Link, "a directory in the repository that is not git's or coven's", func(s string) bool {
		top, _, _ := strings.Cut(s, "/")
		return isDirInside(s) && top != ".git" && top != ".coven" && top != ".beads"
	})
	r.each("worktree.sparse_dirs", w.SparseDirs, "a directory in the worktree", isDirInside)
	r.between(r.at("worktree.pool_gb"), w.PoolGB, 0, maxPoolGB)
}

// withoutSlashes removes the last slash of each directory.
func withoutSlashes(dirs []string) []string {
	dirs = slices.Clone(dirs)
	for i, dir := range dirs {
		dirs[i] = strings.TrimSuffix(dir, "/")
	}
	return dirs
}

// isDirInside reports whether a string is a path of a directory in a repository, without a trailing slash.
func isDirInside(s string) bool {
	return s != "." && !path.IsAbs(s) && path.Clean(s) == s && filepath.IsLocal(s) && !strings.ContainsAny(s, "\x00\n")
}

// isKept reports whether a string is a valid item of Keep.
func isKept(s string) bool {
	if isVariable(s) {
		return slices.Contains(Caches(), s[1:])
	}
	return isGlobInside(s)
}

// isGlobInside reports whether a string is a glob of paths in a worktree, such as node_modules or **/target.
func isGlobInside(s string) bool {
	return s != "" && !path.IsAbs(s) && path.Clean(s) == s && filepath.IsLocal(s) && glob.Check(s) == nil
}
