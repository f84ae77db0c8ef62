package session

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/coven-run/coven/internal/event"
)

// followed is a session of which only the new events are read.
type followed struct {
	file   fs.FileInfo // the journal, before it was last read
	tail   *event.Tail
	folder *folder
	seen   int  // events in view
	view   View // does not change
}

// Follow makes the Finder remember the sessions that it reads, so that it reads only their new events. It is for programs that read
// them again and again.
func (f *Finder) Follow() {
	f.following.Lock()
	defer f.following.Unlock()
	f.followed = map[string]*followed{}
}

func (f *Finder) follows() bool {
	f.following.Lock()
	defer f.following.Unlock()
	return f.followed != nil
}

// load is like Load.
func (f *Finder) load(dir string) (View, error) { return loadWith(dir, f.read) }

// read computes the view of a journal.
func (f *Finder) read(file string) (View, error) {
	f.following.Lock()
	defer f.following.Unlock()
	info, err := os.Lstat(file)
	if f.followed == nil || err != nil {
		return readJournal(file)
	}
	known := f.followed[file]
	if known == nil || !os.SameFile(known.file, info) || info.Size() < known.file.Size() {
		known = &followed{tail: event.NewTail(file), folder: newFolder()}
		f.followed[file] = known
	}
	known.file = info
	if err := known.tail.Next(known.folder.take); err != nil {
		delete(f.followed, file)
		return readJournal(file)
	}
	if known.seen != known.folder.seen || known.seen == 0 {
		known.seen, known.view = known.folder.seen, known.folder.now().clone()
	}
	return known.view, nil
}

// readJournal computes the view of a journal from all its events.
func readJournal(file string) (View, error) {
	folder, failed := newFolder(), error(nil)
	err := event.Each(file, func(e event.Event) error {
		failed = folder.take(e)
		return failed
	})
	if failed != nil {
		return View{}, fmt.Errorf("session %s: %w", filepath.Base(filepath.Dir(file)), failed)
	}
	return folder.now(), err
}
