package session

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/file/regularfile"
)

// maxRecord limits the size of each file of a record that another machine gets, in bytes.
const maxRecord = 256 << 20

// Record returns the files that a session needs to continue on another machine, by name. The last line of the events is complete.
func Record(dir string) (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, name := range recordFiles() {
		content, err := regularfile.ReadIn(dir, name, maxRecord)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read the record of session %s: %w", filepath.Base(dir), err)
		}
		if name == eventsFile {
			content = content[:bytes.LastIndexByte(content, '\n')+1]
		}
		files[name] = content
	}
	return files, nil
}

// Continues reports whether the events of a record begin with those of an earlier one.
func Continues(record, earlier map[string][]byte) bool {
	return len(earlier[eventsFile]) > 0 && bytes.HasPrefix(record[eventsFile], earlier[eventsFile])
}

// EventsOf returns the events of a record.
func EventsOf(record map[string][]byte) []byte { return record[eventsFile] }

// ViewRecord returns the view of a record, as a process sees it that does not know whether another one runs the session.
func ViewRecord(record map[string][]byte) (View, error) {
	events, err := event.Parse(eventsFile, record[eventsFile])
	if err != nil {
		return View{}, err
	}
	v, err := Fold(events)
	if len(events) > 0 {
		v.ID = events[0].Session
	}
	return v, err
}

// Import creates a session from the record of another machine. A session that exists is never changed.
func Import(root, id, task string, record map[string][]byte, now func() time.Time) error {
	return install(root, id, now, func(dir string) error {
		for name, content := range record {
			if !slices.Contains(recordFiles(), name) {
				return fmt.Errorf("unknown file %q", name)
			}
			if err := regularfile.Replace(filepath.Join(dir, name), content, fileMode); err != nil {
				return err
			}
		}
		return checkRecord(dir, id, task)
	})
}
