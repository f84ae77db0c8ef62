package repo

// A Pool limits the files of landed worktrees that are kept for later ones. The zero value keeps none.
type Pool struct {
	Bytes int64    // the most disk space
	Keep  []string // globs of ignored files that pass from task to task; ** spans directories
}

// Sparse selects the files that new worktrees have. The zero value selects all.
type Sparse struct {
	Main bool     // as the main checkout; all if that is not sparse
	Dirs []string // these directories, with slashes, and the files directly in those above; nil: all
}

// UnexaminedPrefix begins the refs of landed worktrees whose files are still to be examined.
const UnexaminedPrefix = "refs/coven/unexamined/"

// examineLater is the size of W's index, in bytes, above which W is examined later: that of about
// 3,000 files, which are examined in less time than a git process takes to start.
const examineLater = 256 << 10

// An Examined is the result of the examination of a landed worktree.
type Examined struct {
	Task   string
	Rescue string // the ref of what had not landed; empty: there was nothing
	// Err is why the files stay where they are, such as an *IgnoredError. nil: they do not.
	Err error
}
