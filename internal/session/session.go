// Package session stores the record of one run of a task in a directory below
// .coven/sessions.
//
// events.jsonl is the source of truth. session.md and metadata.json are views of it,
// rewritten when the session changes its state. Only the process that holds the lock on
// events.jsonl writes a session. The lock ends with the process, so a session that is running
// according to its record but not locked was interrupted. A completed session is never modified.
package session

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/google/uuid"
	"github.com/gosimple/slug"
	"golang.org/x/sys/unix"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/file/regularfile"
	"github.com/coven-run/coven/internal/process/failpoint"
	"github.com/coven-run/coven/internal/session/away"
	"github.com/coven-run/coven/internal/session/backup"
)

// Files of a session directory.
const (
	eventsFile   = "events.jsonl"
	planFile     = "plan.yaml"
	storyFile    = "session.md"
	metadataFile = "metadata.json"
	messagesFile = "messages.jsonl"
	workingFile  = "working.json"
	resultsDir   = "results"
	readsDir     = "reads"
	rejectedFile = "rejected.diff"

	// ReviewFile is the review of a person, which package review writes.
	ReviewFile = "review.json"
)

// LogsDir is the directory of logs in a session's directory.
const LogsDir = "logs"

// Dir is the directory of a project's sessions, relative to the project.
const Dir = ".coven/sessions"

// Records contain tool output, so they are accessible only to their owner.
const (
	dirMode  = 0o700
	fileMode = 0o600
)

// maxPlan limits the size of a plan (prompts, a grimoire and a task) in bytes.
const maxPlan = 16 << 20

// ErrBusy reports that another process is writing the session.
var ErrBusy = errors.New("another coven is working on it")

// ErrNone reports that there is no such session.
var ErrNone = errors.New("no such session")

// Session is a session that this process writes.
type Session struct {
	ID      string
	Dir     string
	Journal *event.Journal

	task   string
	trace  string // trace ID of events that do not belong to a subagent
	lock   *os.File
	now    func() time.Time
	closed bool
	hider  Hider

	publish func(event.Type) error // see Publish

	copies *backup.Store // see BackUp
	copied int           // events in the copy

	saying sync.Mutex
	said   bool // whether messages.jsonl ends with a complete line of this process

	views   sync.Mutex // held while the views are written
	folder  *folder
	written map[string]string // last written state of each subagent's record, by ID
}

// Hider removes secrets from written data.
type Hider interface {
	JSON(value []byte) []byte
	Writer(to io.WriteCloser) io.WriteCloser
}

// Hide applies h to all data that is written from now on.
func (s *Session) Hide(h Hider) {
	s.hider = h
	s.Journal.Redact = h.JSON
}

// Create creates a new session and its directory, which is named after the date, a slug
// of the query, and a number if needed.
func Create(root, task, query string, now func() time.Time) (*Session, error) {
	parent := filepath.Join(root, Dir)
	if err := makeDir(root, Dir); err != nil {
		return nil, fmt.Errorf("create session: %w", err)
	}
	name := now().Format(time.DateOnly) + "-" + Slug(query)
	id := name
	for n := 2; ; n++ {
		err := os.Mkdir(filepath.Join(parent, id), dirMode)
		if err == nil {
			break
		}
		if !errors.Is(err, fs.ErrExist) {
			return nil, fmt.Errorf("create session: %w", err)
		}
		id = fmt.Sprintf("%s-%d", name, n)
	}
	if err := regularfile.SyncDir(parent); err != nil {
		return nil, fmt.Errorf("create session: %w", err)
	}
	forget(root, id, now())
	failpoint.Point("session.made")
	s, err := open(filepath.Join(parent, id), task, uuid.NewString(), now)
	failpoint.Point("session.opened")
	return s, err
}

// Open opens an existing session for writing. It returns ErrBusy if another process
// is writing it, and an *away.Error if another machine has it.
func Open(root, id string, now func() time.Time) (*Session, error) {
	dir := filepath.Join(root, Dir, id)
	if err := regularfile.Directory(root, filepath.Join(Dir, id)); err != nil {
		return nil, err
	}
	first, err := event.First(filepath.Join(dir, eventsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("session %s: %w", id, ErrNone)
	}
	if err != nil {
		return nil, err
	}
	s, err := open(dir, first.Task, first.TraceID, now)
	if err != nil {
		return nil, err
	}
	if err := away.Check(dir, s.task); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// makeDir creates a directory below root that is accessible only to its owner.
// It fails if the path contains symbolic links.
func makeDir(root, dir string) error {
	if err := regularfile.Directory(root, dir); err != nil {
		return err
	}
	return os.MkdirAll(filepath.Join(root, dir), dirMode)
}

func open(dir, task, trace string, now func() time.Time) (*Session, error) {
	file := filepath.Join(dir, eventsFile)
	lock, err := regularfile.OpenFileIn(dir, eventsFile, os.O_RDWR|os.O_CREATE, fileMode)
	if err != nil {
		return nil, fmt.Errorf("open session %s: %w", filepath.Base(dir), err)
	}
	err = acquire(lock)
	if err == nil && !isAt(lock, file) { // Mirror has replaced it
		err = ErrBusy
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("session %s: %w", filepath.Base(dir), err), lock.Close())
	}
	journal, err := event.Open(file, now)
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return &Session{ID: filepath.Base(dir), Dir: dir, Journal: journal, task: task, trace: trace, lock: lock, now: now, folder: newFolder(), written: map[string]string{}}, nil
}

// Events returns the session's events so far.
func (s *Session) Events() []event.Event { return s.Journal.Events() }

// View returns the current view of the session, ignoring whether a process runs it.
func (s *Session) View() (View, error) {
	s.views.Lock()
	defer s.views.Unlock()
	v, err := s.folder.fold(s.Events())
	return v.clone(), err
}

// Append records an event, and updates the views if the session
// changed its state.
func (s *Session) Append(e event.Event, data any) error {
	e.Session, e.Task, e.TraceID = s.ID, s.task, cmp.Or(e.TraceID, s.trace)
	if e.Type == event.SessionCompleted || e.Type == event.SessionCancelled {
		if err := s.writeLastViews(e, data); err != nil {
			return err
		}
	}
	if err := s.Journal.Append(e, data); err != nil {
		return err
	}
	if changesViews(e.Type) {
		if err := s.writeViews(); err != nil {
			return err
		}
	}
	if s.publish != nil {
		return s.publish(e.Type)
	}
	return nil
}

// Publish makes Append call publish after each event that is on disk, with its type. Append returns the error of publish.
func (s *Session) Publish(publish func(event.Type) error) { s.publish = publish }

// changesViews reports whether an event of this type changes the views.
func changesViews(t event.Type) bool {
	if t == event.SessionCreated { // the previous event has written them
		return false
	}
	for _, kind := range []string{"session.", "spawn."} {
		if strings.HasPrefix(string(t), kind) {
			return true
		}
	}
	return t == event.StepCompleted || t == event.LimitMet || t == event.LimitOver
}

// Now returns the time of the session's clock.
func (s *Session) Now() time.Time { return s.now() }

// Close closes the session and releases its lock. Further calls do nothing.
func (s *Session) Close() error {
	if s.closed {
		return nil
	}
	s.closed = true
	failpoint.Point("session.close")
	s.emptyInbox()
	s.backUp()
	release(s.lock)
	return errors.Join(s.Journal.Close(), s.lock.Close())
}

// Discard removes an empty session.
func (s *Session) Discard() error {
	if len(s.Events()) > 0 {
		return fmt.Errorf("session %s is not empty", s.ID)
	}
	return errors.Join(s.Close(), os.RemoveAll(s.Dir))
}

// Freeze writes the plan, and replaces it when the session gets new settings. The plan is durable when Freeze
// returns.
func (s *Session) Freeze(plan []byte) error {
	failpoint.Point("session.freeze.before")
	if err := regularfile.Replace(filepath.Join(s.Dir, planFile), plan, fileMode); err != nil {
		return fmt.Errorf("store the plan: %w", err)
	}
	if err := regularfile.SyncDir(s.Dir); err != nil {
		return fmt.Errorf("store the plan: %w", err)
	}
	failpoint.Point("session.freeze.after")
	return nil
}

// Plan reads the frozen plan of a session directory.
func Plan(dir string) ([]byte, error) {
	plan, err := regularfile.ReadIn(dir, planFile, maxPlan)
	if err != nil {
		return nil, fmt.Errorf("read the plan %s: %w", filepath.Join(dir, planFile), err)
	}
	return plan, nil
}

// maxRejected limits the stored size of a rejected change in bytes.
const maxRejected = 32 << 10

// KeepRejected stores the patch of a rejected change for the next attempt. It truncates
// a large patch at the end of a line.
func (s *Session) KeepRejected(patch string) error {
	if len(patch) > maxRejected {
		cut := strings.LastIndexByte(patch[:maxRejected], '\n') + 1
		patch = patch[:cut] + fmt.Sprintf("(%d more lines are left out here)\n", strings.Count(patch[cut:], "\n"))
	}
	if err := regularfile.Replace(filepath.Join(s.Dir, rejectedFile), []byte(patch), fileMode); err != nil {
		return fmt.Errorf("store the rejected change: %w", err)
	}
	return nil
}

// RejectedPatch returns the patch of the change that a person rejected in a session. It returns ""
// if there is none.
func RejectedPatch(dir string) string {
	patch, err := regularfile.ReadIn(dir, rejectedFile, 2*maxRejected)
	if err != nil {
		return "" // the file was removed, or the change had no patch
	}
	return string(patch)
}

// KeepReads stores the list of the files that a command read outside of its worktree, under the sha256 of the list, which it
// returns.
func (s *Session) KeepReads(list []byte) (string, error) {
	sum := sha256.Sum256(list)
	name := hex.EncodeToString(sum[:])
	err := makeDir(s.Dir, readsDir)
	if err == nil {
		err = regularfile.Replace(filepath.Join(s.Dir, readsDir, name), list, fileMode)
	}
	if err != nil {
		return "", fmt.Errorf("store the list of read files: %w", err)
	}
	return name, nil
}

// maxReads limits the size of a list of read files in bytes.
const maxReads = 64 << 20

// Reads returns the list of read files with this name: see KeepReads.
func Reads(dir, name string) ([]byte, error) {
	return regularfile.ReadIn(dir, filepath.Join(readsDir, filepath.Base(name)), maxReads)
}

// OpenLog opens the log of a step for appending. It returns the offset, which is at the
// start of a line.
func (s *Session) OpenLog(path string) (io.WriteCloser, int64, error) {
	if err := makeDir(s.Dir, LogsDir); err != nil {
		return nil, 0, fmt.Errorf("open log: %w", err)
	}
	file := LogFile(s.Dir, path)
	f, err := regularfile.OpenFileIn(filepath.Dir(file), filepath.Base(file), os.O_RDWR|os.O_APPEND|os.O_CREATE, fileMode)
	if err != nil {
		return nil, 0, fmt.Errorf("open log %s: %w", file, err)
	}
	at, err := lineStart(f)
	if err != nil {
		return nil, 0, errors.Join(fmt.Errorf("open log: %w", err), f.Close())
	}
	if s.hider != nil {
		return s.hider.Writer(f), at, nil
	}
	return f, at, nil
}

// lineStart terminates the last line of a log if a crash left it incomplete, and
// returns the length of the log.
func lineStart(f *os.File) (int64, error) {
	info, err := f.Stat()
	if err != nil || info.Size() == 0 {
		return 0, err
	}
	last := make([]byte, 1)
	if _, err := f.ReadAt(last, info.Size()-1); err != nil {
		return 0, err
	}
	if last[0] == '\n' {
		return info.Size(), nil
	}
	_, err = f.WriteString("\n")
	return info.Size() + 1, err
}

// LogFile returns the file name of a step's log. Slashes in the path become dots.
func LogFile(dir, path string) string {
	return filepath.Join(dir, LogsDir, strings.ReplaceAll(path, "/", ".")+".log")
}

// ReadLog opens the log of a step for reading. It does not follow links out of the session.
func ReadLog(dir, path string) (*os.File, error) {
	return regularfile.OpenIn(dir, filepath.Join(LogsDir, filepath.Base(LogFile(dir, path))))
}

// maxLogLine limits the length of a line of a transcript in bytes.
const maxLogLine = 128 << 20

// ReadLog opens the log of a step for reading from an offset. Reading fails at a line longer than maxLogLine.
func (s *Session) ReadLog(path string, from int64) (io.ReadCloser, error) {
	f, err := ReadLog(s.Dir, path)
	if err != nil {
		return nil, err
	}
	if _, err := f.Seek(from, io.SeekStart); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &transcript{File: f}, nil
}

// transcript limits the length of lines.
type transcript struct {
	*os.File
	open int
}

// Read implements io.Reader.
func (t *transcript) Read(p []byte) (int, error) {
	n, err := t.File.Read(p)
	if end := bytes.LastIndexByte(p[:n], '\n'); end >= 0 {
		t.open = n - end - 1
	} else {
		t.open += n
	}
	if t.open > maxLogLine {
		return 0, fmt.Errorf("read %s: a line is longer than %d bytes", t.Name(), maxLogLine)
	}
	return n, err
}

// acquire locks the file without waiting. It uses an open-file-description lock,
// which ends when the file is closed.
func acquire(f *os.File) error {
	err := unix.FcntlFlock(f.Fd(), setLock, &unix.Flock_t{Type: unix.F_WRLCK})
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
		return ErrBusy
	}
	return err
}

// isAt reports whether a file name still leads to an open file.
func isAt(f *os.File, name string) bool {
	opened, err := f.Stat()
	named, nameErr := os.Lstat(name)
	return err == nil && nameErr == nil && os.SameFile(opened, named)
}

// release releases the lock. Closing the file is not sufficient, because a child process
// also has it open between fork and exec.
func release(f *os.File) {
	_ = unix.FcntlFlock(f.Fd(), setLock, &unix.Flock_t{Type: unix.F_UNLCK}) // closing the file releases it later
}

// held reports whether a process is writing the session in dir.
func held(dir string) bool {
	f, err := regularfile.OpenIn(dir, eventsFile)
	if err != nil {
		return false
	}
	defer f.Close() //nolint:errcheck // read only
	lock := unix.Flock_t{Type: unix.F_RDLCK}
	err = unix.FcntlFlock(f.Fd(), getLock, &lock)
	return err == nil && lock.Type != unix.F_UNLCK
}

// maxSlug limits the length of a slug in bytes.
const maxSlug = 50

// asciiSlug is a replacement of slug.Make for ASCII. It avoids unpacking the tables of other scripts,
// which takes longer than many commands.
func asciiSlug(text string) string {
	text = strings.NewReplacer("&", "and", "@", "at", `"`, "", "'", "").Replace(text)
	return strings.Map(func(c rune) rune {
		if 'a' <= c && c <= 'z' || '0' <= c && c <= '9' {
			return c
		}
		return '-'
	}, strings.ToLower(text))
}

// Slug converts text to a name of lower case ASCII letters, digits and single dashes, which is
// safe in paths and refs. Other scripts are transliterated.
func Slug(text string) string {
	plain := asciiSlug
	if strings.IndexFunc(text, func(c rune) bool { return c > unicode.MaxASCII }) >= 0 {
		plain = slug.Make
	}
	name := strings.Join(strings.FieldsFunc(plain(text), func(c rune) bool { return c == '-' || c == '_' }), "-")
	if len(name) > maxSlug {
		name = name[:maxSlug]
	}
	return cmp.Or(strings.Trim(name, "-"), "session")
}
