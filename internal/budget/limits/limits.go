// Package limits tracks the rate limits of accounts. A limit belongs to an account:
// once one agent hits it, it applies to all agents of the account.
//
// Each limit is a small file in the repository's .coven/run/limits, so that
// every coven process of the repository knows it, even after a kill -9. Limits come
// only from structured reports of providers (provider.Limit). When the API does not
// report how long a limit lasts, the session retries after 1, 2, 4, 8, 15, 15... minutes
// until the API answers. Times are those of internal/process/clock.
package limits

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/coven-run/coven/internal/file/regularfile"
	"github.com/coven-run/coven/internal/process/clock"
	"github.com/coven-run/coven/internal/text/lazyregexp"
	"github.com/coven-run/coven/plugins/provider"
)

// Patience is how long an agent CLI may wait before it retries by itself.
const Patience = 30 * time.Second

// Limit is the rate limit of an account. Its API is not called before Until.
type Limit struct {
	Until  time.Time `json:"until"`
	Told   bool      `json:"told"` // whether the API reported Until; otherwise it is an estimate
	Reason string    `json:"reason"`
	// Refusals counts the limits reported in a row without an answer in between.
	Refusals int `json:"refusals"`
}

// Store keeps the limits of a repository.
type Store struct {
	dir string
	mu  sync.Mutex
}

// Open returns the store of the repository at root. It writes nothing until the first
// limit.
func Open(root string) *Store { return &Store{dir: filepath.Join(root, ".coven", "run", "limits")} }

// Limited returns the limit of an account and reports whether it is in force.
func (s *Store) Limited(account string) (Limit, bool, error) {
	l, err := s.read(account)
	return l, l.holds(), err
}

func (l Limit) holds() bool { return l.Until.After(clock.Now()) }

// Refused records a limit that a provider reported. stop reports whether the agent
// must stop. The agent may continue if its CLI retries soon and no longer limit
// is known.
func (s *Store) Refused(account string, said provider.Limit) (stop bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known, err := s.read(account)
	if err != nil {
		return true, err
	}
	left := said.After
	if !said.Until.IsZero() {
		left = max(time.Until(said.Until), 0)
	}
	if said.Again > 0 && clock.ToClock(max(left, said.Again)) <= Patience {
		return known.holds(), nil
	}
	met := known.Next(left, said.Reason)
	if met == known {
		return true, nil
	}
	return true, s.write(account, met)
}

// steps returns how long to wait for a limit of unknown duration.
func steps(refusals int) time.Duration {
	minutes := []time.Duration{1, 2, 4, 8, 15}
	return minutes[min(refusals, len(minutes)-1)] * time.Minute
}

// Next returns the limit after another refusal. left is the reported duration in real
// time, or 0 if it is unknown.
func (l Limit) Next(left time.Duration, reason string) Limit {
	now := clock.Now().Round(0)
	told := Limit{Until: now.Add(clock.ToClock(left)), Told: true, Reason: reason, Refusals: l.Refusals}
	switch {
	case l.holds() && left <= 0:
		return l // several agents hit the same limit
	case l.holds() && l.Told && l.Until.After(told.Until):
		return l
	case l.holds():
		return told
	case left <= 0:
		told.Until, told.Told = now.Add(steps(l.Refusals)), false
	case l.Refusals > 0: // the last report was too short
		told.Until = later(told.Until, now.Add(steps(l.Refusals-1)))
	}
	told.Refusals++
	return told
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// Answered records that an account's API answered. It does not end a limit in
// force, because the answer may have been sent before the limit was hit.
func (s *Store) Answered(account string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	l, err := s.read(account)
	if err != nil || l == (Limit{}) || l.holds() {
		return err
	}
	if err := os.Remove(s.file(account)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the limit of %s: %w", account, err)
	}
	return nil
}

// unsafe matches the characters of an account that are replaced in its file name.
var unsafe = lazyregexp.New(`[^A-Za-z0-9_-]`)

func (s *Store) file(account string) string {
	return filepath.Join(s.dir, unsafe.ReplaceAllString(account, "-")+".json")
}

// maxLimit limits the size of a limit's file, in bytes.
const maxLimit = 64 << 10

// read returns the zero Limit if there is none. It ignores an invalid file,
// because a limit in force is soon reported again.
func (s *Store) read(account string) (Limit, error) {
	data, err := regularfile.ReadIn(s.dir, filepath.Base(s.file(account)), maxLimit)
	if errors.Is(err, fs.ErrNotExist) {
		return Limit{}, nil
	}
	if errors.Is(err, regularfile.ErrNotFile) || errors.As(err, new(*regularfile.SizeError)) {
		return Limit{}, nil
	}
	if errors.Is(err, fs.ErrPermission) { // of another user of a shared repository, with another account
		return Limit{}, nil
	}
	if err != nil {
		return Limit{}, fmt.Errorf("read the limits of %s: %w", account, err)
	}
	var l Limit
	_ = json.Unmarshal(data, &l) // ignore invalid content
	return l, nil
}

func (s *Store) write(account string, l Limit) error {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return fmt.Errorf("write the limit of %s: %w", account, err)
	}
	data, err := json.Marshal(l)
	if err != nil {
		return fmt.Errorf("write the limit of %s: %w", account, err)
	}
	if err := regularfile.Replace(s.file(account), append(data, '\n'), 0o600); err != nil {
		return fmt.Errorf("write the limit of %s: %w", account, err)
	}
	return nil
}

// maxJitter limits the random delay of Wake.
const maxJitter = time.Minute

// Wake returns when a session that starts to wait now should continue. It is a random
// time shortly after the limit ends, so that not all sessions continue at once.
func (l Limit) Wake(now time.Time) time.Time {
	jitter := min(l.Until.Sub(now)/10, maxJitter)
	if jitter <= 0 {
		return l.Until
	}
	return l.Until.Add(rand.N(jitter)) //nolint:gosec // no secret
}
