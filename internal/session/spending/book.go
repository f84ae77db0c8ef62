package spending

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/file/regularfile"
	"github.com/coven-run/coven/internal/session/usage"
)

// booksDir has the usage of sessions that leave no records, relative to the project. Each file is a Book.
const booksDir = ".coven/run/spending"

// maxBook limits the size of a file in booksDir, in bytes.
const maxBook = 64 << 20

// Book records the usage of sessions that leave no records, such as those of a backtest, as JSON lines. It is safe for concurrent
// use.
type Book struct {
	ledger *Ledger
	name   string

	mu     sync.Mutex
	file   *os.File
	failed error
}

// line is the format of a line of a Book.
type line struct {
	Session string    `json:"session"`
	Task    string    `json:"task"`
	Time    time.Time `json:"time"`
	Path    string    `json:"path"`
	Agent   string    `json:"agent,omitempty"`
	Model   string    `json:"model,omitempty"`
	Input   int64     `json:"tokens_input"`
	Output  int64     `json:"tokens_output"`
	Read    int64     `json:"tokens_cache_read"`
	Write   int64     `json:"tokens_cache_write"`
	USD     float64   `json:"cost_usd"`
}

// NewBook creates a Book of the ledger's project.
func (l *Ledger) NewBook() (*Book, error) {
	dir := filepath.Join(l.root, filepath.FromSlash(booksDir))
	err := regularfile.Directory(l.root, booksDir)
	if err == nil {
		err = os.MkdirAll(dir, 0o700)
	}
	if err != nil {
		return nil, fmt.Errorf("record the usage: %w", err)
	}
	file, err := os.CreateTemp(dir, l.now().Format("20060102T150405")+"-*.jsonl")
	if err != nil {
		return nil, fmt.Errorf("record the usage: %w", err)
	}
	return &Book{ledger: l, name: filepath.Base(file.Name()), file: file}, nil
}

// Observe returns a function that records the usage of one session from its events, and passes them on to next. task is the value by
// which the usage is grouped instead of the session's task. n distinguishes the sessions of the Book.
func (b *Book) Observe(n int, task string, next func(event.Event)) func(event.Event) {
	of := usage.New(b.ledger.prices)
	of.Charged(func(c usage.Charge) { b.write(Charge{Session: fmt.Sprintf("%s/%d", b.name, n), Task: task, Charge: c}) })
	return func(e event.Event) {
		of.Take(e)
		next(e)
	}
}

// write appends a charge in one write, so that a killed process leaves whole lines.
func (b *Book) write(c Charge) {
	text, err := json.Marshal(line{
		c.Session, c.Task, c.Time, c.Path, c.Agent, c.Model, c.Tokens.Input, c.Tokens.Output, c.Tokens.CacheRead, c.Tokens.CacheWrite, c.USD,
	})
	b.mu.Lock()
	defer b.mu.Unlock()
	if err == nil {
		_, err = b.file.Write(append(text, '\n'))
	}
	b.failed = errors.Join(b.failed, err)
}

// Close closes the Book. It removes an empty one. The error is also that of earlier writes.
func (b *Book) Close() error {
	info, err := b.file.Stat()
	if err == nil && info.Size() == 0 {
		err = os.Remove(b.file.Name())
	}
	if err = errors.Join(b.failed, err, b.file.Close()); err != nil {
		return fmt.Errorf("record the usage: %w", err)
	}
	return nil
}

// bookStamp identifies a state of a Book.
type bookStamp struct {
	written time.Time
	size    int64
}

// book is a Book as it was read.
type book struct {
	bookStamp
	all []Charge
}

// inBooks returns the charges in Books at or after a time. The caller holds the lock.
func (l *Ledger) inBooks(since time.Time) (found []Charge, err error) {
	if err := regularfile.Directory(l.root, booksDir); err != nil {
		return nil, fmt.Errorf("read the usage of backtests: %w", err)
	}
	dir := filepath.Join(l.root, filepath.FromSlash(booksDir))
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || info.ModTime().Before(since) {
			continue // it was removed concurrently, or has nothing newer
		}
		stamp := bookStamp{info.ModTime(), info.Size()}
		known, ok := l.books[e.Name()]
		if !ok || known.bookStamp != stamp {
			text, err := regularfile.ReadIn(dir, e.Name(), maxBook)
			if err != nil {
				return nil, fmt.Errorf("read the usage of backtests: %w", err)
			}
			known = book{stamp, chargesOf(text)}
			l.books[e.Name()] = known
		}
		found = append(found, known.all...)
	}
	return slices.DeleteFunc(found, func(c Charge) bool { return c.Time.Before(since) }), err
}

// chargesOf decodes a Book. Damaged lines do not count.
func chargesOf(text []byte) (all []Charge) {
	for one := range bytes.Lines(text) {
		var c line
		if json.Unmarshal(one, &c) != nil {
			continue
		}
		charge := Charge{Session: c.Session, Task: c.Task, Charge: usage.Charge{Time: c.Time, Path: c.Path, Agent: c.Agent, Model: c.Model, USD: c.USD}}
		charge.Tokens.Input, charge.Tokens.Output, charge.Tokens.CacheRead, charge.Tokens.CacheWrite = c.Input, c.Output, c.Read, c.Write
		all = append(all, charge)
	}
	return all
}
