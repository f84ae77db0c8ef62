package repo

import (
	"sync"

	"github.com/coven-run/coven/worktree/internal/protected"
)

// memo caches the directories of hooks for a configuration of the repository, the last state of its refs,
// and the trees of kept indexes. Each field belongs to one package above.
type memo struct {
	Mu      sync.Mutex
	Config  string
	Dirs    []string
	State   protected.State
	Trees   sync.Map // of keptTree, by the path of a kept index
	Tickets sync.Map // of chan struct{}, by the path of a ticket of this process: closed when it is dropped

	// Fresh has the trees of worktrees that Add has just made, by the path of their kept indexes, until an
	// operation opens that index, or something may run there.
	Fresh sync.Map

	Tidying sync.WaitGroup // see pool.TidyLater
	Tidy    sync.Mutex
}
