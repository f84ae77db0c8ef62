// Package comments keeps the comments of a person's review in the directory of a session. Package review places them in the change.
package comments

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/file/regularfile"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/text/lazyregexp"
	"github.com/coven-run/coven/internal/text/shellword"
)

// Limits of a review.
const (
	maxState = 128 << 20 // bytes: the maximum of comments with the longest texts, escaped
	maxLine  = 999_999_999
	Max      = 500
	MaxFile  = 16 << 20 // bytes of a file whose lines are compared with those of a comment
	MaxText  = 16 << 10 // bytes of a text or suggestion
)

// lockName is the file in the session's directory that is locked while the state changes.
const lockName = "review.lock"

// File is the content of the file session.ReviewFile in a session's directory.
type File struct {
	Version  int               `json:"v"`
	Next     int               `json:"next"` // number of the next comment
	Comments []Comment         `json:"comments,omitempty"`
	Viewed   map[string]string `json:"viewed,omitempty"` // by path, the object ID and mode of the content
	Looked   []string          `json:"looked,omitempty"` // the last two trees that were looked at
}

// A DamagedError means that the file with the review of a session cannot be read.
type DamagedError struct {
	Path string
	Err  error
}

func (e *DamagedError) Error() string {
	return fmt.Sprintf("the comments in %s cannot be read: %v", e.Path, e.Err)
}

func (e *DamagedError) Unwrap() error { return e.Err }

// CommandExit returns the exit code of commands.
func (e *DamagedError) CommandExit() int { return exit.Person }

// NextCommand returns the command that sets the file aside.
func (e *DamagedError) NextCommand() string {
	return "mv " + shellword.Word(e.Path) + " " + shellword.Word(e.Path+".damaged")
}

// Load reads the comments of a session.
func Load(dir string) (File, error) {
	s := File{Version: 1, Next: 1}
	text, err := regularfile.ReadIn(dir, session.ReviewFile, maxState)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	if err == nil {
		err = s.check()
	}
	if err != nil {
		return s, &DamagedError{filepath.Join(dir, session.ReviewFile), err}
	}
	return s, nil
}

// objectID matches a tree or commit. Anything else could be an option of git.
var objectID = lazyregexp.New(`^(?:[0-9a-f]{40}|[0-9a-f]{64})$`)

// check returns why a state cannot be one that coven has written.
func (s File) check() error {
	if s.Version != 1 {
		return fmt.Errorf("version %d is not known to this coven", s.Version)
	}
	if len(s.Comments) > Max {
		return fmt.Errorf("it has %d comments, which is more than %d", len(s.Comments), Max)
	}
	seen := map[string]bool{}
	for _, c := range s.Comments {
		if n, err := strconv.Atoi(strings.TrimPrefix(c.ID, "c")); err != nil || n < 1 || n >= s.Next || c.ID != "c"+strconv.Itoa(n) || seen[c.ID] {
			return fmt.Errorf("%q is not the ID of a comment, or of another one", c.ID)
		}
		seen[c.ID] = true
		if !c.isValid() {
			return fmt.Errorf("comment %s has an invalid place", c.ID)
		}
	}
	if i := slices.IndexFunc(s.Looked, func(tree string) bool { return !objectID.MatchString(tree) }); i >= 0 {
		return fmt.Errorf("%q is not a tree", s.Looked[i])
	}
	return nil
}

// isValid reports whether an anchor can be one that coven has made.
func (a Anchor) isValid() bool {
	return objectID.MatchString(a.Tree) && IsPath(a.Path) && (a.Side == New || a.Side == Old) && a.From >= 1 && a.To >= a.From && a.To <= maxLine
}

// IsPath reports whether a comment can be about the file at a path.
func IsPath(path string) bool { return fs.ValidPath(path) && !strings.ContainsAny(path, "\n\x00") }

// Change changes the comments of a session. Other processes wait.
func Change(dir string, by func(*File) error) error {
	lock, err := regularfile.OpenFileIn(dir, lockName, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("lock the review: %w", err)
	}
	defer lock.Close() //nolint:errcheck // ends the lock
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		return fmt.Errorf("lock the review: %w", err)
	}
	s, err := Load(dir)
	if err != nil {
		return err
	}
	if err := by(&s); err != nil {
		return err
	}
	text, err := json.MarshalIndent(s, "", " ")
	if err == nil {
		err = regularfile.Replace(filepath.Join(dir, session.ReviewFile), append(text, '\n'), 0o600)
	}
	if err != nil {
		return fmt.Errorf("store the review: %w", err)
	}
	return nil
}

// Add adds a comment with the next ID. It returns false if there are too many.
func (s *File) Add(c *Comment) bool {
	if len(s.Comments) >= Max {
		return false
	}
	c.ID = "c" + strconv.Itoa(s.Next)
	s.Next++
	s.Comments = append(s.Comments, *c)
	return true
}

// Last returns the last tree that was looked at and is not the present one.
func (s File) Last(present string) string {
	for i := len(s.Looked) - 1; i >= 0; i-- {
		if s.Looked[i] != present {
			return s.Looked[i]
		}
	}
	return ""
}

// Look records that a person looks at a tree.
func (s *File) Look(tree string) {
	if n := len(s.Looked); n > 0 && s.Looked[n-1] == tree {
		return
	}
	s.Looked = append(s.Looked, tree)
	s.Looked = s.Looked[max(len(s.Looked)-2, 0):]
}

// Side is the side of a change on which a commented line is.
type Side string

// The sides.
const (
	New Side = "new" // the content of the worktree
	Old Side = "old" // the start of the change: the line is removed
)

// Anchor names lines of a file in a tree.
type Anchor struct {
	Tree string `json:"tree"` // object ID of a tree, or of a commit for the side Old
	Path string `json:"path"`
	Side Side   `json:"side"`
	From int    `json:"from"` // first line, from 1
	To   int    `json:"to"`   // last line
	Hash string `json:"hash"` // sha256 of the lines, with line feeds between them
}

// Comment is a person's comment on lines of a change.
type Comment struct {
	ID string    `json:"id"` // c1, c2, ... in a session
	By string    `json:"by"`
	At time.Time `json:"time"`
	Anchor
	Text       string  `json:"text,omitempty"`
	Suggestion *string `json:"suggestion,omitempty"` // replaces the lines
	Remote     string  `json:"remote,omitempty"`     // its ID on the host of the pull request, if it comes from there
}

// Place returns the place of an anchor as review.ParsePlace reads it.
func (a Anchor) Place() string {
	text := a.Path + ":"
	if a.Side == Old {
		text += "-"
	}
	text += strconv.Itoa(a.From)
	if a.To != a.From {
		text += "-" + strconv.Itoa(a.To)
	}
	return text
}

// LinesOf returns the lines of a file.
func LinesOf(content []byte) []string {
	if len(content) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(content), "\n"), "\n")
}

// HashOf returns the hash of lines, for an Anchor.
func HashOf(lines []string) string {
	sum := sha256.Sum256([]byte(strings.Join(lines, "\n")))
	return hex.EncodeToString(sum[:])
}
