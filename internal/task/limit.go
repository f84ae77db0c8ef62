package task

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/coven-run/coven/internal/lazyregexp"
	"github.com/coven-run/coven/internal/regularfile"
)

// MaxText is the maximum size of a task's text in bytes: of its line of JSON in a
// file, of its texts elsewhere.
const MaxText = 1 << 20

// maxFile is the maximum size of a tasks file in bytes, including overlong lines.
const maxFile = 512 << 20

// headLen is how much of an overlong line is searched for its id.
const headLen = 4 << 10

// TooLargeError reports a task with more text than MaxText.
type TooLargeError struct {
	ID   string
	File string // empty: it is kept by a program
	Line int    // from 1
}

// Error names the task and the limit.
func (e *TooLargeError) Error() string {
	at := ""
	if e.File != "" {
		at = fmt.Sprintf("%s:%d: ", e.File, e.Line)
	}
	return fmt.Sprintf("%stask %s has more than %d bytes of text; shorten it", at, e.ID, MaxText)
}

// Unwrap returns ErrInvalid.
func (e *TooLargeError) Unwrap() error { return ErrInvalid }

// tooLarge returns a placeholder for a task that is too large: it is not ready, and
// its dependents wait.
func tooLarge(id, status string) Task {
	return Task{
		ID: id, Title: fmt.Sprintf("(left out: more than %d bytes of text)", MaxText), Status: status, Type: "task", Priority: defaultPriority,
		aside: true, large: true,
	}
}

// longLine is an overlong line that is not in memory: its place in the file, without its
// ending.
type longLine struct{ from, size int64 }

// These match the id and the status at the start of a truncated line.
var (
	headID     = lazyregexp.New(`^[\s\x{FEFF}]*\{(?s:.*?)"id"\s*:\s*"([^"\\]{1,200})"`)
	headStatus = lazyregexp.New(`"status"\s*:\s*"([a-z_]{1,40})"`)
)

// large returns the content of an overlong line. If the status is not in its head, the
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
	return lineContent{known: true, task: tooLarge(string(id[1]), status)}
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

// readLines reads a tasks file line by line. Of an overlong line it keeps the head,
// and the place of the rest.
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

// readLine returns a line with its ending and its size; of an overlong line the head,
// with the newline if there is one.
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

// writeTo writes the document. from is the file that was read.
func (d *document) writeTo(to io.Writer, from io.ReaderAt) error {
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
	return nil
}

// cutMark ends a truncated text in a program's answer.
const cutMark = "\uFFFFcut by coven\uFFFF"

// shortener copies JSON and truncates texts that are longer than a task may be: one
// task in the answer of a program may be too large.
type shortener struct {
	to       io.Writer
	inText   bool
	escaped  bool
	length   int
	kept     []byte // of the text that is open, up to headLen
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

// flush writes an unterminated text: the input was not JSON.
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
	size := 0
	for _, text := range []string{t.Title, t.Description, t.Acceptance, t.Design, t.Notes, t.CloseReason} {
		size += len(text)
		if strings.HasSuffix(text, cutMark) {
			return true
		}
	}
	for _, c := range t.Comments {
		size += len(c.Text)
		if strings.HasSuffix(c.Text, cutMark) {
			return true
		}
	}
	return size > MaxText
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
