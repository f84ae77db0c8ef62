// Package account keeps which accounts' model APIs refuse at present. A limit is
// a fact about an account: one agent meets it, and it holds for all.
//
// Rules. A limit is a small file below the repository's .coven/run/limits, so
// that all covens of a repository know of it, also after a kill -9. It comes only
// from what a provider says in a form of its own (provider.Limit). When the API
// does not say how long it lasts, it is tried again after 1, 2, 4, 8, 15, 15...
// minutes, until an answer comes. Times are internal/clock's.
package account

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"time"

	"github.com/google/renameio/v2"

	"github.com/coven-run/coven/internal/clock"
	"github.com/coven-run/coven/internal/regularfile"
	"github.com/coven-run/coven/plugins/provider"
)

// Patience is how long an agent CLI may wait by itself until it asks its API
// again.
const Patience = 30 * time.Second

// Limit is until when an account's API is not asked.
type Limit struct {
	Until  time.Time `json:"until"`
	Told   bool      `json:"told"` // the API said so; false: nobody knows
	Reason string    `json:"reason"`
	// Refusals is how many limits were met one after the other, without an answer
	// between them.
	Refusals int `json:"refusals"`
}

// Book is where limits are written down.
type Book struct {
	dir string
	mu  sync.Mutex
}

// Open opens the book of the repository at root. Nothing is written before the
// first limit.
func Open(root string) *Book { return &Book{dir: filepath.Join(root, ".coven", "run", "limits")} }

// Limited returns the limit that holds for an account now, if there is one.
func (b *Book) Limited(account string) (Limit, bool, error) {
	l, err := b.read(account)
	return l, l.holds(), err
}

func (l Limit) holds() bool { return l.Until.After(clock.Now()) }

// Met takes what a provider said of a limit, and says whether the agent that met
// it is to be stopped. It may go on when its CLI asks again soon and nobody knows
// of a longer limit.
func (b *Book) Met(account string, said provider.Limit) (stop bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	known, err := b.read(account)
	if err != nil {
		return true, err
	}
	left := said.After
	if !said.Until.IsZero() {
		left = max(time.Until(said.Until), 0)
	}
	if said.Again > 0 && clock.Lasting(max(left, said.Again)) <= Patience {
		return known.holds(), nil
	}
	met := known.next(left, said.Reason)
	if met == known {
		return true, nil
	}
	return true, b.write(account, met)
}

// steps are the waits for a limit of which nobody knows how long it lasts.
func steps(refusals int) time.Duration {
	minutes := []time.Duration{1, 2, 4, 8, 15}
	return minutes[min(refusals, len(minutes)-1)] * time.Minute
}

// next is the limit after a refusal that says how long the limit lasts in the
// world, or 0.
func (l Limit) next(left time.Duration, reason string) Limit {
	now := clock.Now().Round(0)
	told := Limit{Until: now.Add(clock.Lasting(left)), Told: true, Reason: reason, Refusals: l.Refusals}
	switch {
	case l.holds() && left <= 0:
		return l // met by several agents
	case l.holds() && l.Told && l.Until.After(told.Until):
		return l
	case l.holds():
		return told
	case left <= 0:
		told.Until, told.Told = now.Add(steps(l.Refusals)), false
	case l.Refusals > 0: // what was told last was too early
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

// Answered takes that an account's API gave an answer. One that was on its way
// when a limit was met does not end it.
func (b *Book) Answered(account string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	l, err := b.read(account)
	if err != nil || l == (Limit{}) || l.holds() {
		return err
	}
	if err := os.Remove(b.file(account)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("forget a limit: %w", err)
	}
	return nil
}

// unsafe is what the name of a file does not take of an account's name.
var unsafe = regexp.MustCompile(`[^A-Za-z0-9_-]`)

func (b *Book) file(account string) string {
	return filepath.Join(b.dir, unsafe.ReplaceAllString(account, "-")+".json")
}

// maxLimit is how many bytes the file of a limit may have.
const maxLimit = 64 << 10

// read returns no limit when there is none. A file that cannot be read as one is
// none: a limit that holds is soon met again.
func (b *Book) read(account string) (Limit, error) {
	data, err := regularfile.ReadIn(b.dir, filepath.Base(b.file(account)), maxLimit)
	if errors.Is(err, fs.ErrNotExist) {
		return Limit{}, nil
	}
	if errors.Is(err, regularfile.ErrNotFile) || errors.As(err, new(*regularfile.SizeError)) {
		return Limit{}, nil
	}
	if err != nil {
		return Limit{}, fmt.Errorf("read the limits of %s: %w", account, err)
	}
	var l Limit
	_ = json.Unmarshal(data, &l) // what cannot be read is no limit
	return l, nil
}

func (b *Book) write(account string, l Limit) error {
	if err := os.MkdirAll(b.dir, 0o700); err != nil {
		return fmt.Errorf("write down a limit: %w", err)
	}
	data, err := json.Marshal(l)
	if err != nil {
		return fmt.Errorf("write down a limit: %w", err)
	}
	if err := renameio.WriteFile(b.file(account), append(data, '\n'), 0o600); err != nil {
		return fmt.Errorf("write down a limit: %w", err)
	}
	return nil
}

// mostJitter is the most by which one who waited goes on late.
const mostJitter = time.Minute

// Wake is when one who waits from now on until a limit ends goes on: a little
// later, so that not all who wait go on at once.
func (l Limit) Wake(now time.Time) time.Time {
	jitter := min(l.Until.Sub(now)/10, mostJitter)
	if jitter <= 0 {
		return l.Until
	}
	return l.Until.Add(rand.N(jitter)) //nolint:gosec // nobody guesses it
}
