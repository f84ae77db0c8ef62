package endpoint

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strings"
)

// maxAnswer limits an event and a list of models, and maxStream a whole stream, in bytes.
const (
	maxAnswer = 16 << 20
	maxStream = 256 << 20
)

// event is a server-sent event.
type event struct {
	name string
	data []byte
}

// beginsStream reports whether an answer looks like a stream of events: it begins with a field, a comment,
// an empty line or a byte order mark, or is empty. Some servers send another content type.
func beginsStream(answer *bufio.Reader) bool {
	first, err := answer.Peek(1)
	return err != nil || strings.IndexByte("edir:\r\n\xef", first[0]) >= 0
}

// events returns the events of a stream. It omits an incomplete event at the end of the stream.
func events(stream *bufio.Reader) iter.Seq2[event, error] {
	return func(yield func(event, error) bool) {
		var e event
		var line []byte
		for first := true; ; first = false {
			var err error
			if line, err = readLine(stream, line[:0]); err != nil {
				if !errors.Is(err, io.EOF) {
					yield(event{}, err)
				}
				return
			}
			if first {
				line = bytes.TrimPrefix(line, []byte("\ufeff"))
			}
			if len(line) > 0 {
				e.add(line)
			} else if e.name != "" || len(e.data) > 0 {
				if !yield(e, nil) {
					return
				}
				e = event{data: e.data[:0]}
			}
			if len(e.data) > maxAnswer {
				yield(event{}, errTooLarge())
				return
			}
		}
	}
}

// readLine appends a line without its end to a buffer. The error is io.EOF if the stream ends within the
// line.
func readLine(stream *bufio.Reader, line []byte) ([]byte, error) {
	for {
		part, err := stream.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > maxAnswer:
			return nil, errTooLarge()
		case err == nil:
			return bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r")), nil
		case errors.As(err, new(*http.MaxBytesError)):
			return nil, fmt.Errorf("its answer is larger than %d MB", maxStream>>20)
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
}

func errTooLarge() error { return fmt.Errorf("it sent an event of more than %d MB", maxAnswer>>20) }

// add adds a line, which is a field or a comment. Lines of an event's data are separated by line feeds.
func (e *event) add(line []byte) {
	field, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(field) {
	case "event":
		e.name = string(value)
	case "data":
		if len(e.data) > 0 {
			e.data = append(e.data, '\n')
		}
		e.data = append(e.data, value...)
	}
}

// isError reports whether an event means that the answer failed. Servers use several forms.
func (e event) isError() bool {
	var wire struct {
		Type   string          `json:"type"`
		Object string          `json:"object"`
		Error  json.RawMessage `json:"error"`
	}
	_ = json.Unmarshal(e.data, &wire) // other data is not an error
	hasError := len(wire.Error) > 0 && string(wire.Error) != "null"
	return e.name == "error" || wire.Type == "error" || wire.Object == "error" || wire.Type == "" && hasError
}
