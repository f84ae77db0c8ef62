package task

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/coven-run/coven/internal/file/regularfile"
	"github.com/coven-run/coven/internal/text/lazyregexp"
)

// MaxText is the maximum size of a task's text in bytes: the size of its JSON line in a
// file, or the total size of its texts elsewhere.
const MaxText = 1 << 20

// maxFile is the maximum size of a tasks file in bytes, including overlong lines.
const maxFile = 512 << 20

// headLen is the length of the beginning of an overlong line that is searched for its ID.
const headLen = 4 << 10

// TooLargeError reports a task with more text than MaxText.
type TooLargeError struct {
	ID   string
	File string // empty for a program's task
	Line int    // starting at 1
}

// Error includes the task and the limit.
func (e *TooLargeError) Error() string {
	at := ""
	if e.File != "" {
		at = fmt.Sprintf("%s:%d: ", e.File, e.Line)
	}
	return fmt.Sprintf("%stask %s has more than %d bytes of text; shorten it", at, e.ID, MaxText)
}

// Unwrap returns ErrInvalid.
func (e *TooLargeError) Unwrap() error { return ErrInvalid }

// tooLarge returns a placeholder for a task that is too large. It is not ready, and
// its dependents wait.
func tooLarge(id, status string) Task {
	return Task{
		ID: id, Title: fmt.Sprintf("(left out: more than %d bytes of text)", MaxText), Status: status, Type: "task", Priority: defaultPriority,
		aside: true, large: true,
	}
}

// longLine is the position of an overlong line in the file, without its line
// ending. The line is not kept in memory.
type longLine struct{ from, size int64 }

// Patterns for the ID and the status in the head of an overlong line.
var (
	headID     = lazyregexp.New(`^[\s\x{FEFF}]*\{(?s:.*?)"id"\s*:\s*"([^"\\]{1,200})"`)
	headStatus = lazyregexp.New(`"status"\s*:\s*"([a-z_]{1,40})"`)
)

// large returns the content of an overlong line. If the head contains no status, the
// task counts as open.
func large(head []byte) lineContent {
	id := headID.FindSubmatch(head)
	if id == nil {
		return lineContent{known: true, none: true}
	}
	status := StatusOpen
	if m := headStatus.FindSubmatch(head); m != nil {
		status = string(m[1])
	}
	t := tooLarge(string(id[1]), status)
	return lineContent{known: true, task: &t}
}

// open opens the tasks file for reading. Both results are nil if it does not exist.
func (f *File) open() (*os.File, fs.FileInfo, error) {
	file, err := regularfile.Open(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read tasks: %s: %w", f.path, err)
	}
	info, err := file.Stat()
	if err == nil && info.Size() > maxFile {
		err = &regularfile.SizeError{Max: maxFile}
	}
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("read tasks: %s: %w", f.path, err), file.Close())
	}
	return file, info, nil
}

// readLines reads a tasks file line by line. It keeps only the head and the
// position of an overlong line.
func readLines(r io.Reader) (lines [][]byte, longLines map[int]longLine, err error) {
	in, at := bufio.NewReaderSize(r, 64<<10), int64(0)
	longLines = map[int]longLine{}
	for {
		line, size, err := readLine(in)
		if size > 0 {
			if size > int64(len(line)) {
				longLines[len(lines)] = longLine{at, size - int64(bytes.Count(line[len(line)-1:], []byte("\n")))}
			}
			lines, at = append(lines, line), at+size
		}
		if errors.Is(err, io.EOF) {
			return lines, longLines, nil
		}
		if err != nil {
			return nil, nil, err
		}
	}
}

// readLine returns a line with its ending, and its size. For an overlong line it returns the head,
// followed by the newline if there is one.
func readLine(in *bufio.Reader) (line []byte, size int64, err error) {
	for {
		part, err := in.ReadSlice('\n')
		size += int64(len(part))
		switch {
		case size <= MaxText:
			line = append(line, part...)
		default:
			line = line[:min(len(line), headLen):min(len(line), headLen)]
			if bytes.HasSuffix(part, []byte("\n")) {
				line = append(line, '\n')
			}
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, size, err
		}
	}
}

// writeTo writes the document. from is the file from which the document was read.
func (d *document) writeTo(file io.Writer, from io.ReaderAt) error {
	to := bufio.NewWriterSize(file, 64<<10)
	for i, line := range d.lines {
		at, isFar := d.longLines[i]
		if !isFar {
			if _, err := to.Write(line); err != nil {
				return err
			}
			continue
		}
		if _, err := io.Copy(to, io.NewSectionReader(from, at.from, at.size)); err != nil {
			return err
		}
		if bytes.HasSuffix(line, []byte("\n")) {
			if _, err := to.Write([]byte("\n")); err != nil {
				return err
			}
		}
	}
	return to.Flush()
}

// cutMark marks the end of a truncated text in a program's answer.
const cutMark = "\uFFFFcut by coven\uFFFF"

// shortener copies JSON and truncates strings that exceed MaxText, because an answer may
// contain tasks that are too large.
type shortener struct {
	to       io.Writer
	inText   bool
	escaped  bool
	length   int
	kept     []byte // of the current string, up to headLen
	overflow bool
}

// Write implements io.Writer.
func (s *shortener) Write(p []byte) (int, error) {
	out := make([]byte, 0, len(p)+len(s.kept))
	for _, b := range p {
		out = s.next(out, b)
	}
	if _, err := s.to.Write(out); err != nil {
		return 0, err
	}
	return len(p), nil
}

// next processes one byte.
func (s *shortener) next(out []byte, b byte) []byte {
	ends := b == '"' && !s.escaped
	s.escaped = b == '\\' && !s.escaped && s.inText
	switch {
	case !s.inText:
		s.inText, s.length, s.overflow = b == '"', 0, false
		return append(out, b)
	case ends:
		s.inText = false
		out = append(out, s.kept...)
		if s.kept = s.kept[:0]; s.overflow {
			out = append(out, cutMark...)
		}
		return append(out, b)
	}
	if s.overflow {
		return out
	}
	if s.length++; s.length > MaxText {
		s.overflow, s.kept = true, s.kept[:s.whole()]
		return out
	}
	s.kept = append(s.kept, b)
	return out
}

// flush writes an unterminated string of invalid JSON.
func (s *shortener) flush() error {
	_, err := s.to.Write(s.kept)
	s.kept = nil
	return err
}

// whole returns the length of the head without a partial character or escape at its
// end.
func (s *shortener) whole() int {
	end := min(len(s.kept), headLen)
	for i, b := range s.kept[:end] {
		if b == '\\' || b >= 0x80 {
			return i
		}
	}
	return end
}

// isLarge reports whether a task has too much text, or was truncated.
func (t Task) isLarge() bool {
	isCut := func(text string) bool { return strings.HasSuffix(text, cutMark) }
	return t.textSize() > MaxText || slices.ContainsFunc(t.texts(), isCut)
}

// texts returns the texts of a task that can be long.
func (t Task) texts() []string {
	texts := []string{t.Title, t.Description, t.Acceptance, t.Design, t.Notes, t.CloseReason}
	for _, c := range t.Comments {
		texts = append(texts, c.Text)
	}
	return texts
}

// textSize returns the size of a task's texts in bytes.
func (t Task) textSize() (size int) {
	for _, text := range t.texts() {
		size += len(text)
	}
	return size
}

// Usable returns a *TooLargeError if a task has too much text to work on.
func (t Task) Usable() error {
	if t.large {
		return &TooLargeError{ID: t.ID}
	}
	return nil
}

// size returns the size of a new task's text in bytes.
func (n New) size() int {
	size := len(n.Title) + len(n.Description) + len(n.Type)
	for _, text := range append(n.Acceptance[:len(n.Acceptance):len(n.Acceptance)], n.Labels...) {
		size += len(text)
	}
	return size
}
