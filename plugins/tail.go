package plugins

import (
	"strconv"
	"strings"
	"sync"
)

// maxTail is how much of what a plugin printed is kept, in bytes.
const maxTail = 8 << 10

// tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	kept []byte
	cut  bool
}

// Write never fails.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	size := len(p)
	if size > maxTail {
		p, t.cut = p[size-maxTail:], true
	}
	t.kept = append(t.kept, p...)
	if len(t.kept) > 2*maxTail { // so that bytes move rarely
		t.trim()
	}
	return size, nil
}

func (t *tail) trim() {
	if extra := len(t.kept) - maxTail; extra > 0 {
		t.kept, t.cut = append(t.kept[:0], t.kept[extra:]...), true
	}
}

// quote says in words what was printed last, for the end of an error: line by
// line, so that a stack can be read, and nothing in it that a terminal obeys.
func (t *tail) quote() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.trim()
	text := strings.TrimSpace(string(t.kept))
	if text == "" {
		return "; it printed nothing"
	}
	var b strings.Builder
	b.WriteString("; it printed last:")
	for i, line := range strings.Split(text, "\n") {
		b.WriteString("\n    ")
		if i == 0 && t.cut {
			b.WriteString("...")
		}
		b.WriteString(escapeLine(strings.TrimSuffix(line, "\r")))
	}
	return b.String()
}

// escapeLine is a line without anything that is not to be seen.
func escapeLine(line string) string {
	line = strings.ReplaceAll(line, "\t", "    ")
	quoted := strconv.Quote(line)
	return strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
}
