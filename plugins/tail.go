package plugins

import (
	"strconv"
	"strings"
	"sync"
)

// maxTail limits the stored output of a plugin, in bytes.
const maxTail = 8 << 10

// tail is a writer that stores the end of its input.
type tail struct {
	mu   sync.Mutex
	kept []byte
	cut  bool
}

// Write implements io.Writer. It never fails.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	size := len(p)
	if size > maxTail {
		p, t.cut = p[size-maxTail:], true
	}
	t.kept = append(t.kept, p...)
	if len(t.kept) > 2*maxTail { // trim rarely, because it copies
		t.trim()
	}
	return size, nil
}

func (t *tail) trim() {
	if extra := len(t.kept) - maxTail; extra > 0 {
		t.kept, t.cut = append(t.kept[:0], t.kept[extra:]...), true
	}
}

// quote formats the last output for the end of an error message. It preserves the lines, so that a stack
// trace is readable, and escapes control characters.
func (t *tail) quote() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.trim()
	text := strings.TrimSpace(string(t.kept))
	if text == "" {
		return "; no output"
	}
	var b strings.Builder
	b.WriteString("; last output:")
	for i, line := range strings.Split(text, "\n") {
		b.WriteString("\n    ")
		if i == 0 && t.cut {
			b.WriteString("...")
		}
		b.WriteString(escapeLine(strings.TrimSuffix(line, "\r")))
	}
	return b.String()
}

// escapeLine escapes the control characters of a line.
func escapeLine(line string) string {
	line = strings.ReplaceAll(line, "\t", "    ")
	quoted := strconv.Quote(line)
	return strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
}
