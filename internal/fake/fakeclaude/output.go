package fakeclaude

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync"
)

// object is one JSON object, on the wire or in a file.
type object = map[string]any

// terminalReset is the output of the real CLI when it begins to exit and a standard
// stream is a terminal. It is never followed by a newline. The
// very last output is showCursor.
const terminalReset = "\x1b[?1006l\x1b[?1003l\x1b[?1002l\x1b[?1000l\x1b(B\x0f\x1b[>4m\x1b[<u\x1b[?1004l" +
	"\x1b[?2031l\x1b[?2004l\x1b[?25h\x1b7\x1b[r\x1b8\x1b]0;\x07"

const showCursor = "\x1b[?25h"

// output prints events, one JSON object per line.
type output struct {
	mu       sync.Mutex
	writer   io.Writer
	session  string
	split    bool // print every line in two writes
	silent   bool // no result events
	terminal bool
	reset    bool // terminalReset was printed
}

func newOutput(session string) *output {
	return &output{
		writer: os.Stdout, session: session,
		terminal: isTerminal(os.Stdout) || isTerminal(os.Stderr),
	}
}

// event prints one event, its type first. It adds an ID if there is none.
func (o *output) event(kind string, fields object) {
	if kind == "result" && o.silent {
		return
	}
	fields["session_id"] = o.session
	if given, _ := fields["uuid"].(string); given == "" {
		fields["uuid"] = newUUID()
	}
	o.line(`{"type":` + encode(kind) + `,` + encode(fields)[1:])
}

// line prints the text and a newline. It ignores errors, which cannot be reported.
func (o *output) line(text string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	text += "\n"
	if o.split {
		half := len(text) / 2
		_, _ = io.WriteString(o.writer, text[:half])
		text = text[half:]
	}
	_, _ = io.WriteString(o.writer, text)
}

// resetTerminal prints terminalReset once, as the real CLI does before it exits.
func (o *output) resetTerminal() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.terminal && !o.reset {
		o.reset = true
		_, _ = io.WriteString(o.writer, terminalReset)
	}
}

// end prints the last bytes of the output.
func (o *output) end() {
	o.resetTerminal()
	if o.terminal {
		_, _ = io.WriteString(o.writer, showCursor)
	}
}

// encode encodes values from JSON or literals, which cannot fail.
func encode(value any) string {
	data, err := json.Marshal(value)
	if err != nil {
		panic(fmt.Sprintf("fakeclaude: encode event: %v", err))
	}
	return string(data)
}

func newUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails: it would crash instead
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
