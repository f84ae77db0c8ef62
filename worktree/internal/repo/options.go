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
