package repo

// A Pool limits the files of landed worktrees that are kept for reuse. The zero value keeps none.
type Pool struct {
	Bytes int64    // maximum disk space
	Keep  []string // globs of ignored files that are passed from task to task; ** spans directories
}

// Sparse selects the files that new worktrees have. The zero value selects all.
type Sparse struct {
	Main bool     // use the selection of the main checkout, if that is sparse
	Dirs []string // directories to include, with slashes, and the files directly in their parents; nil means all
}
