// Package backup keeps copies of the records of sessions in the git directory, so that a session that waits for a
// person survives the removal of .coven, for example by git clean -fdx.
//
// A copy is one compressed file, which is replaced whenever a process stops working on the session. It contains the
// files that the session needs to continue: the journal, the plan, the messages, and a rejected change, with secrets
// masked as in the record. Logs and views are left out. Nothing waits for the disk: a copy that was cut off by a power
// failure is recognized by its checksum.
package backup

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/coven-run/coven/internal/file/regularfile"
	"github.com/coven-run/coven/internal/text/shellword"
)

// Limits, in bytes.
const (
	maxHeader = 1 << 20
	maxCopy   = 2 << 30 // of all files of a session
)

// suffix follows the ID of a session in the name of its copy.
const suffix = ".tar.gz"

// headerFile is the name of the first entry of a copy.
const headerFile = "session.json"

// Copies are accessible only to their owner, as the records are.
const (
	dirMode  = 0o700
	fileMode = 0o600
)

// A DamagedError means that a copy cannot be used: it is incomplete or changed, or belongs to another session or
// repository.
type DamagedError struct {
	Path string
	Err  error
}

func (e *DamagedError) Error() string {
	return fmt.Sprintf("the copy %s cannot be used: %v", e.Path, e.Err)
}

func (e *DamagedError) Unwrap() error { return e.Err }

// NextCommand returns the command that removes the copy.
func (e *DamagedError) NextCommand() string { return "rm " + shellword.Word(e.Path) }

// A Store is a directory of copies.
type Store struct {
	Dir   string
	Files []string // the files of a session that are copied, if they exist
	// Repository returns the ID of the repository, which copies contain.
	Repository func() (string, error)
	Root       string // the main checkout
}

// A Header describes a copy.
type Header struct {
	V          int       `json:"v"`
	Session    string    `json:"session"`
	Task       string    `json:"task"`
	Title      string    `json:"title,omitempty"`
	Repository string    `json:"repository"`
	Root       string    `json:"root"`
	Time       time.Time `json:"time"` // of the last event
	Events     int       `json:"events"`
}

// Path returns the file of a session's copy.
func (s Store) Path(id string) string { return filepath.Join(s.Dir, id+suffix) }

// Write replaces the copy of the session in dir. The caller holds the session's lock. h needs no repository and root.
func (s Store) Write(dir string, h Header) error {
	repository, err := s.Repository()
	if err != nil {
		return fmt.Errorf("copy session %s: %w", h.Session, err)
	}
	h.V, h.Repository, h.Root = 1, repository, s.Root
	if err := os.MkdirAll(s.Dir, dirMode); err != nil {
		return fmt.Errorf("copy session %s: %w", h.Session, err)
	}
	f, err := os.CreateTemp(s.Dir, ".new-*") // its mode is 0600
	if err != nil {
		return fmt.Errorf("copy session %s: %w", h.Session, err)
	}
	err = errors.Join(s.pack(f, dir, h), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), s.Path(h.Session))
	}
	if err != nil {
		return errors.Join(fmt.Errorf("copy session %s: %w", h.Session, err), os.Remove(f.Name()))
	}
	return nil
}

func (s Store) pack(to io.Writer, dir string, h Header) error {
	compressed, err := gzip.NewWriterLevel(to, gzip.BestSpeed)
	if err != nil {
		return err
	}
	archive := tar.NewWriter(compressed)
	header, err := json.Marshal(h)
	if err != nil {
		return err
	}
	if err := archive.WriteHeader(&tar.Header{Name: headerFile, Mode: fileMode, Size: int64(len(header))}); err != nil {
		return err
	}
	if _, err := archive.Write(header); err != nil {
		return err
	}
	for _, name := range s.Files {
		if err := packFile(archive, dir, name); err != nil {
			return err
		}
	}
	return errors.Join(archive.Close(), compressed.Close())
}

func packFile(archive *tar.Writer, dir, name string) error {
	f, err := regularfile.OpenIn(dir, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // read only
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if err := archive.WriteHeader(&tar.Header{Name: name, Mode: fileMode, Size: info.Size()}); err != nil {
		return err
	}
	_, err = io.CopyN(archive, f, info.Size())
	return err
}

// IDs lists the sessions that have a copy, sorted.
func (s Store) IDs() ([]string, error) {
	entries, err := os.ReadDir(s.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list the copies of sessions: %w", err)
	}
	var ids []string
	for _, e := range entries {
		if id, ok := strings.CutSuffix(e.Name(), suffix); ok && !strings.HasPrefix(id, ".") {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// Header reads the header of a session's copy. It does not check the rest of the copy.
func (s Store) Header(id string) (Header, error) {
	f, content, err := s.open(id)
	if err != nil {
		return Header{}, err
	}
	defer f.Close() //nolint:errcheck // read only
	return s.header(tar.NewReader(content), id)
}

// open opens a copy. content is its decompressed content.
func (s Store) open(id string) (f io.Closer, content io.Reader, err error) {
	file, err := regularfile.OpenIn(s.Dir, id+suffix)
	if err != nil {
		return nil, nil, fmt.Errorf("read %s: %w", s.Path(id), err)
	}
	compressed, err := gzip.NewReader(file)
	if err != nil {
		return nil, nil, errors.Join(s.damaged(id, err), file.Close())
	}
	return file, io.LimitReader(compressed, maxCopy), nil
}

func (s Store) damaged(id string, err error) error {
	return &DamagedError{Path: s.Path(id), Err: err}
}

func (s Store) header(archive *tar.Reader, id string) (h Header, err error) {
	entry, err := archive.Next()
	if err != nil {
		return h, s.damaged(id, err)
	}
	raw, err := io.ReadAll(io.LimitReader(archive, maxHeader))
	if err == nil {
		err = json.Unmarshal(raw, &h)
	}
	switch {
	case err != nil:
		return h, s.damaged(id, err)
	case entry.Name != headerFile || h.V != 1 || h.Session != id:
		return h, s.damaged(id, errors.New("it is not that of the session"))
	}
	return h, nil
}

// Extract writes the files of a session's copy to dir, which must be an empty directory. If the copy is damaged, files
// may be missing.
func (s Store) Extract(id, dir string) (Header, error) {
	f, content, err := s.open(id)
	if err != nil {
		return Header{}, err
	}
	defer f.Close() //nolint:errcheck // read only
	archive := tar.NewReader(content)
	h, err := s.header(archive, id)
	if err != nil {
		return h, err
	}
	for {
		entry, err := archive.Next()
		if errors.Is(err, io.EOF) {
			_, err = io.Copy(io.Discard, content) // compares the checksum
			if err != nil {
				err = s.damaged(id, err)
			}
			return h, err
		}
		if err != nil {
			return h, s.damaged(id, err)
		}
		if entry.Typeflag != tar.TypeReg || !slices.Contains(s.Files, entry.Name) {
			return h, s.damaged(id, fmt.Errorf("unknown file %q", entry.Name))
		}
		if err := extractFile(filepath.Join(dir, entry.Name), archive); err != nil {
			return h, s.damaged(id, err)
		}
	}
}

func extractFile(path string, from io.Reader) error {
	to, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	return errors.Join(err, to.Sync(), to.Close())
}

// Remove removes the copy of a session, if there is one.
func (s Store) Remove(id string) error {
	if err := os.Remove(s.Path(id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the copy of session %s: %w", id, err)
	}
	return nil
}
