package task

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/coven-run/coven/internal/text/jsonline"
)

// document is the content of a file: its lines with their endings, and the
// tasks in them.
type document struct {
	path      string
	lines     [][]byte
	contents  []lineContent // the content of each line
	tasks     map[string]Task
	line      map[string]int // index of the line in effect, including tombstones
	typed     bool           // the last line has "_type"
	changed   bool
	longLines map[int]longLine // overlong lines; lines contains only their head
}

// lineContent is the content of a line.
type lineContent struct {
	known bool
	task  *Task // not changed: readings share it
	none  bool  // not a task
	typed bool  // has "_type"
}

// reading is the decoded content of the lines when the file was last read. It is reused for unchanged
// lines.
type reading struct {
	lines     [][]byte
	contents  []lineContent
	longLines map[int]longLine
}

const byteOrderMark = "\xef\xbb\xbf"

// parse decodes the content of a file. It reuses the contents of unchanged lines.
func (r reading) parse(path string, from io.Reader) (*document, error) {
	lines, long, err := readLines(from)
	if err != nil {
		return nil, fmt.Errorf("read tasks: %w", err)
	}
	d := &document{path: path, lines: lines, longLines: long, tasks: make(map[string]Task, len(lines)), line: make(map[string]int, len(lines)), typed: true}
	d.contents = make([]lineContent, len(d.lines))
	for i := range d.lines {
		_, isLong := d.longLines[i]
		_, wasLong := r.longLines[i]
		if i < len(r.lines) && isLong == wasLong && bytes.Equal(d.lines[i], r.lines[i]) {
			d.contents[i] = r.contents[i]
		}
		if err := d.read(i); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// read decodes one line.
func (d *document) read(i int) error {
	if !d.contents[i].known {
		var err error
		if d.contents[i], err = d.decode(i); err != nil {
			return err
		}
	}
	if d.contents[i].none {
		return nil
	}
	d.typed = d.contents[i].typed
	t := d.contents[i].task
	d.line[t.ID] = i
	delete(d.tasks, t.ID)
	if t.Status != statusTombstone {
		d.tasks[t.ID] = *t
	}
	return nil
}

// decode decodes the content of a line.
func (d *document) decode(i int) (lineContent, error) {
	_, body, _ := d.parts(i)
	if _, isLong := d.longLines[i]; isLong {
		return large(body), nil
	}
	if len(bytes.TrimSpace(body)) == 0 {
		return lineContent{known: true, none: true}, nil
	}
	if isConflictMarker(body) {
		return lineContent{}, &ConflictMarkersError{File: d.path, Line: i + 1}
	}
	fields, err := newDecoder(body)
	if err != nil {
		return lineContent{}, d.corrupt(i, err)
	}
	kind := fields.text("_type", "")
	if kind != "" && kind != "issue" {
		return lineContent{known: true, none: true}, nil
	}
	t, err := fields.task()
	if err != nil {
		return lineContent{}, d.corrupt(i, err)
	}
	return lineContent{known: true, task: &t, typed: kind != ""}, nil
}

// parts splits a line into a byte order mark, its body and its ending.
func (d *document) parts(i int) (mark, body, ending []byte) {
	body = d.lines[i]
	if i == 0 && bytes.HasPrefix(body, []byte(byteOrderMark)) {
		mark, body = body[:len(byteOrderMark)], body[len(byteOrderMark):]
	}
	end := len(bytes.TrimSuffix(bytes.TrimSuffix(body, []byte("\n")), []byte("\r")))
	return mark, body[:end], body[end:]
}

// isConflictMarker reports whether a line is one of git's four conflict markers. No
// JSON value starts like them.
func isConflictMarker(body []byte) bool {
	for _, mark := range []string{"<<<<<<<", "|||||||", "=======", ">>>>>>>"} {
		rest, ok := bytes.CutPrefix(body, []byte(mark))
		if ok && (len(rest) == 0 || rest[0] == ' ') {
			return true
		}
	}
	return false
}

// corrupt returns the error about an invalid line, with its position in the file.
func (d *document) corrupt(i int, err error) error {
	mark, _, _ := d.parts(i)
	found := &CorruptError{File: d.path, Line: i + 1, Column: 1, Reason: err.Error()}
	syntax := (*jsonline.SyntaxError)(nil)
	if errors.As(err, &syntax) {
		found.Column = len(mark) + syntax.Offset + 1
	}
	return found
}

func (d *document) get(id string) (Task, error) {
	t, ok := d.tasks[id]
	if !ok {
		return Task{}, fmt.Errorf("task %s: %w in %s", id, ErrNotFound, d.path)
	}
	return t, nil
}

// patch changes members of a task's line.
func (d *document) patch(id string, edits []jsonline.Edit) error {
	i := d.line[id]
	if d.tasks[id].large {
		return &TooLargeError{ID: id, File: d.path, Line: i + 1}
	}
	mark, body, ending := d.parts(i)
	body, err := jsonline.Patch(body, edits)
	if err != nil {
		return d.corrupt(i, err)
	}
	d.lines[i], d.contents[i] = bytes.Join([][]byte{mark, body, ending}, nil), lineContent{}
	d.changed = true
	return d.read(i)
}

// add appends a line. If the file has no final newline, this does not change.
func (d *document) add(body []byte) error {
	ending, last := []byte("\n"), len(d.lines)-1
	if last >= 0 {
		ending = d.ending()
		if _, _, end := d.parts(last); len(end) == 0 {
			d.lines[last] = append(d.lines[last][:len(d.lines[last]):len(d.lines[last])], ending...)
			ending = nil
		}
	}
	d.lines, d.contents = append(d.lines, append(body, ending...)), append(d.contents, lineContent{})
	d.changed = true
	return d.read(len(d.lines) - 1)
}

// ending returns the line ending of the file.
func (d *document) ending() []byte {
	if _, _, end := d.parts(0); len(end) > 0 {
		return end
	}
	return []byte("\n")
}

// reading returns the content of the lines, independent of later changes of the
// document.
func (d *document) reading() reading {
	return reading{slices.Clone(d.lines), slices.Clone(d.contents), maps.Clone(d.longLines)}
}
