package task

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
)

// document is the content of a file: its lines with their endings, and the
// tasks found in them.
type document struct {
	path    string
	lines   [][]byte
	said    []said // what each line says
	tasks   map[string]Task
	line    map[string]int // where the line that counts is, tombstones too
	typed   bool           // the last line says "_type"
	changed bool
	far     map[int]far // lines that are too long: of those lines holds the head
}

// said is what one line says.
type said struct {
	known bool
	task  Task
	none  bool // it is no task
	typed bool // it says "_type"
}

// reading is what the lines of a file said when it was read last. A line that is
// still the same says the same.
type reading struct {
	lines [][]byte
	said  []said
	far   map[int]far
}

const byteOrderMark = "\xef\xbb\xbf"

// parse reads the content of a file.
func parse(path string, data []byte) (*document, error) { return reading{}.parse(path, data) }

// parse reads the content of a file that was read before.
func (r reading) parse(path string, data []byte) (*document, error) {
	return r.parseFrom(path, bytes.NewReader(data))
}

// parseFrom is parse of a file that is open.
func (r reading) parseFrom(path string, from io.Reader) (*document, error) {
	d := &document{path: path, tasks: map[string]Task{}, line: map[string]int{}, typed: true}
	var err error
	if d.lines, d.far, err = readLines(from); err != nil {
		return nil, fmt.Errorf("read tasks: %w", err)
	}
	d.said = make([]said, len(d.lines))
	for i := range d.lines {
		_, isFar := d.far[i]
		_, wasFar := r.far[i]
		if i < len(r.lines) && isFar == wasFar && bytes.Equal(d.lines[i], r.lines[i]) {
			d.said[i] = r.said[i]
		}
		if err := d.read(i); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// read takes in one line.
func (d *document) read(i int) error {
	if !d.said[i].known {
		var err error
		if d.said[i], err = d.decode(i); err != nil {
			return err
		}
	}
	if d.said[i].none {
		return nil
	}
	d.typed = d.said[i].typed
	t := d.said[i].task
	d.line[t.ID] = i
	delete(d.tasks, t.ID)
	if t.Status != statusTombstone {
		d.tasks[t.ID] = t
	}
	return nil
}

// decode finds out what a line says.
func (d *document) decode(i int) (said, error) {
	_, body, _ := d.parts(i)
	if _, isFar := d.far[i]; isFar {
		return large(body), nil
	}
	if len(bytes.TrimSpace(body)) == 0 {
		return said{known: true, none: true}, nil
	}
	if isConflictMarker(body) {
		return said{}, &ConflictMarkersError{File: d.path, Line: i + 1}
	}
	fields, err := newDecoder(body)
	if err != nil {
		return said{}, d.corrupt(i, err)
	}
	kind := fields.text("_type", "")
	if kind != "" && kind != "issue" {
		return said{known: true, none: true}, nil
	}
	t, err := fields.task()
	if err != nil {
		return said{}, d.corrupt(i, err)
	}
	return said{known: true, task: t, typed: kind != ""}, nil
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

// isConflictMarker knows the four lines that git puts into a file. No JSON
// value starts like them.
func isConflictMarker(body []byte) bool {
	for _, mark := range []string{"<<<<<<<", "|||||||", "=======", ">>>>>>>"} {
		rest, ok := bytes.CutPrefix(body, []byte(mark))
		if ok && (len(rest) == 0 || rest[0] == ' ') {
			return true
		}
	}
	return false
}

// corrupt reports where in the file a line is wrong.
func (d *document) corrupt(i int, err error) error {
	mark, _, _ := d.parts(i)
	found := &CorruptError{File: d.path, Line: i + 1, Column: 1, Reason: err.Error()}
	syntax := (*syntaxError)(nil)
	if errors.As(err, &syntax) {
		found.Column = len(mark) + syntax.offset + 1
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
func (d *document) patch(id string, edits []edit) error {
	i := d.line[id]
	if d.tasks[id].large {
		return &TooLargeError{ID: id, File: d.path, Line: i + 1}
	}
	mark, body, ending := d.parts(i)
	body, err := patch(body, edits)
	if err != nil {
		return d.corrupt(i, err)
	}
	d.lines[i], d.said[i] = bytes.Join([][]byte{mark, body, ending}, nil), said{}
	d.changed = true
	return d.read(i)
}

// add puts a line at the end. A file that ended without a newline still does.
func (d *document) add(body []byte) error {
	ending, last := []byte("\n"), len(d.lines)-1
	if last >= 0 {
		ending = d.ending()
		if _, _, end := d.parts(last); len(end) == 0 {
			d.lines[last] = append(d.lines[last][:len(d.lines[last]):len(d.lines[last])], ending...)
			ending = nil
		}
	}
	d.lines, d.said = append(d.lines, append(body, ending...)), append(d.said, said{})
	d.changed = true
	return d.read(len(d.lines) - 1)
}

// ending is how the file ends its lines.
func (d *document) ending() []byte {
	if _, _, end := d.parts(0); len(end) > 0 {
		return end
	}
	return []byte("\n")
}

// reading is what the lines say, whatever becomes of the document.
func (d *document) reading() reading {
	return reading{slices.Clone(d.lines), slices.Clone(d.said), maps.Clone(d.far)}
}

func (d *document) bytes() []byte { return bytes.Join(d.lines, nil) }
