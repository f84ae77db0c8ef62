package pulls

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/coven-run/coven/internal/file/regularfile"
	"github.com/coven-run/coven/plugins/forge"
)

// File and lockFile are the names of the stored states and their lock, in Dir of the repository.
const (
	Dir      = ".coven/run"
	File     = "pulls.json"
	lockFile = "pulls.lock"
	maxFile  = 64 << 20
)

// fileFormat is the content of File. All coven processes of the repository share it.
type fileFormat struct {
	V            int      `json:"v"`
	Repositories []stored `json:"repositories"`
}

// stored has the states of the pull requests that coven follows in a repository of a host. A state is stored before a session acts on it, so
// that Version never names a state that is not stored.
type stored struct {
	Repository forge.Repository  `json:"repository"`
	Version    string            `json:"version,omitempty"` // of the last report
	Asked      time.Time         `json:"asked,omitzero"`    // time of the last report
	Next       time.Time         `json:"next,omitzero"`     // earliest time of the next one
	Failures   int               `json:"failures,omitempty"`
	Problem    string            `json:"problem,omitempty"` // of the last attempt
	Moved      string            `json:"moved,omitempty"`   // present path of the repository, if it was renamed
	Limit      forge.Limit       `json:"limit,omitzero"`
	Pulls      map[int]*followed `json:"pulls,omitempty"`
}

// followed is a pull request that a session follows.
type followed struct {
	forge.PullRequest
	Stale bool   `json:"stale,omitempty"` // coven has changed it since it was asked for
	Seen  string `json:"seen,omitempty"`  // the version on which its session acted last
}

// read reads the states. A file that cannot be read counts as missing: the host knows the states.
func read(root string) fileFormat {
	var all fileFormat
	text, err := regularfile.ReadIn(filepath.Join(root, Dir), File, maxFile)
	if err != nil || json.Unmarshal(text, &all) != nil || all.V != 1 {
		return fileFormat{V: 1}
	}
	return all
}

// of returns the states of a repository.
func (all *fileFormat) of(repository forge.Repository) *stored {
	i := slices.IndexFunc(all.Repositories, func(s stored) bool { return s.Repository == repository })
	if i < 0 {
		i = len(all.Repositories)
		all.Repositories = append(all.Repositories, stored{Repository: repository})
	}
	s := &all.Repositories[i]
	maps.DeleteFunc(s.Pulls, func(_ int, p *followed) bool { return p == nil })
	if s.Pulls == nil {
		s.Pulls = map[int]*followed{}
	}
	return s
}

// change changes the states of a repository. Other processes wait. It returns the states after the change.
func change(ctx context.Context, root string, repository forge.Repository, by func(*stored) error) (stored, error) {
	dir := filepath.Join(root, Dir)
	if err := os.MkdirAll(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return stored{}, fmt.Errorf("store the states of pull requests: %w", err)
	}
	lock, err := regularfile.OpenFileIn(dir, lockFile, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return stored{}, fmt.Errorf("lock the states of pull requests: %w", err)
	}
	defer lock.Close() //nolint:errcheck // ends the lock
	for {
		err := unix.Flock(int(lock.Fd()), unix.LOCK_EX)
		if err == nil {
			break
		}
		if !errors.Is(err, unix.EINTR) || ctx.Err() != nil {
			return stored{}, errors.Join(fmt.Errorf("lock the states of pull requests: %w", err), context.Cause(ctx))
		}
	}
	all := read(root)
	s := all.of(repository)
	before, _ := json.Marshal(all) // as below
	failed := by(s)
	text, err := json.Marshal(all)
	if err == nil && !bytes.Equal(text, before) {
		err = regularfile.Replace(filepath.Join(dir, File), text, 0o600)
	}
	if err != nil {
		return *s, fmt.Errorf("store the states of pull requests: %w", err)
	}
	return *s, failed
}
