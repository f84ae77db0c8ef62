package task

import (
	"context"
	"io"
	"io/fs"
	"strings"
	"sync"
	"time"
)

// File is a beads JSONL file. It caches only decoded lines: every call reads the file,
// and decodes new lines. It is safe for concurrent use by goroutines and processes.
type File struct {
	path    string
	lockDir string
	now     func() time.Time

	mu   sync.Mutex
	last reading // replaced but never modified
}

// OpenFile returns the tracker of the file at path. Adding the first task creates the
// file and its directory. Locks are in lockDir, which is created when needed. Programs
// that share the file should share lockDir, and it should be outside of the working tree.
func OpenFile(path, lockDir string) *File {
	return &File{path: path, lockDir: lockDir, now: time.Now}
}

// Path returns the path of the file.
func (f *File) Path() string { return f.path }

// Kind returns jsonl.
func (f *File) Kind() string { return JSONL }

// Where returns the path of the file.
func (f *File) Where() string { return f.path }

// List returns all tasks, including closed ones, by priority, age and ID.
func (f *File) List(ctx context.Context) ([]Task, error) {
	d, err := f.read(ctx)
	if err != nil {
		return nil, err
	}
	all := make([]Task, 0, len(d.tasks))
	for _, t := range d.tasks {
		all = append(all, t)
	}
	return inOrder(all), nil
}

// Ready returns the tasks that can be worked on now, in order.
func (f *File) Ready(ctx context.Context) ([]Task, error) {
	d, err := f.read(ctx)
	if err != nil {
		return nil, err
	}
	g := f.graph(d)
	ready := []Task{}
	for _, t := range d.tasks {
		if g.ready(t) {
			ready = append(ready, t)
		}
	}
	return inOrder(ready), nil
}

// Get returns one task, or ErrNotFound if no task has that ID.
func (f *File) Get(ctx context.Context, id string) (Task, error) {
	d, err := f.read(ctx)
	if err != nil {
		return Task{}, err
	}
	return d.get(id)
}

// Blockers returns the IDs of the open tasks that block a task. They include
// ancestors that are blocked or deferred themselves.
func (f *File) Blockers(ctx context.Context, id string) ([]string, error) {
	d, err := f.read(ctx)
	if err != nil {
		return nil, err
	}
	t, err := d.get(id)
	if err != nil {
		return nil, err
	}
	return f.graph(d).blockers(t), nil
}

func (f *File) graph(d *document) graph { return newGraph(d.tasks, f.now()) }

func (f *File) read(ctx context.Context) (*document, error) {
	d, _, err := f.load(ctx)
	return d, err
}

// load reads the file and returns its identity, or nil if it does not exist.
func (f *File) load(ctx context.Context) (*document, fs.FileInfo, error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	file, was, err := f.open()
	if err != nil {
		return nil, nil, err
	}
	if file == nil {
		d, err := reading{}.parse(f.path, strings.NewReader(""))
		return d, nil, err
	}
	defer file.Close() //nolint:errcheck // read only
	d, err := f.parse(stoppable{ctx, file})
	return d, was, err
}

// stoppable is a reader that fails once its context is done.
type stoppable struct {
	ctx context.Context
	io.Reader
}

// Read implements io.Reader.
func (r stoppable) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.Reader.Read(p)
}

// parse decodes the content of the file, reusing decoded lines.
func (f *File) parse(from io.Reader) (*document, error) {
	f.mu.Lock()
	last := f.last
	f.mu.Unlock()
	d, err := last.parse(f.path, from)
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	f.last = d.reading()
	f.mu.Unlock()
	return d, nil
}
