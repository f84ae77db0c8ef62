package repo

import (
	"sync"

	"github.com/coven-run/coven/worktree/internal/protected"
)

// memo caches data in memory: the hooks directories and the configuration that they depend on, the last
// state of the refs, and the trees of kept indexes. Each field belongs to one of the packages that import
// this one.
type memo struct {
	Mu     sync.Mutex
	Config string
	Dirs   []string
	State  protected.State

	Place Place // see Repo.Place

	Attributes string // path of the system's attributes file, or "" if unknown

	Trees   sync.Map // of keptTree, by the path of a kept index
	Tickets sync.Map // of chan struct{}, by the path of a ticket of this process; closed when it is dropped

	// Fresh contains the trees of worktrees that Add has just created, by the path of their kept index. An
	// entry is removed when an operation opens the index, or before a program may run in the worktree.
	Fresh sync.Map

	Tidying sync.WaitGroup // see pool.TidyLater
	Tidy    sync.Mutex
}
