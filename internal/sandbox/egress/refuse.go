package egress

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
)

// maxReported limits the number of reported hosts.
const maxReported = 1000

// refusals reports refused hosts and formats refusals.
type refusals struct {
	file   string
	report func(host string)

	mu   sync.Mutex
	seen map[string]bool
}

// note reports a host if it is new.
func (r *refusals) note(host string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.seen[host] || len(r.seen) >= maxReported || r.report == nil {
		return
	}
	if r.seen == nil {
		r.seen = map[string]bool{}
	}
	r.seen[host] = true
	r.report(host)
}

// text returns the refusal for the program, with the setting that would allow the host.
func (r *refusals) text(refused *refusal) string {
	text := "coven: " + refused.Error()
	if refused.fixable {
		text += fmt.Sprintf("; to allow it, add %q to sandbox.network in %s", refused.target, cmp.Or(r.file, "your configuration file"))
	}
	return text
}

// fail answers a request that is refused or whose host cannot be reached.
func (p *Proxy) fail(w http.ResponseWriter, r *http.Request, t target, err error) {
	status, text := http.StatusBadGateway, fmt.Sprintf("coven: cannot connect to %s: %s", t.host.dial(t.port), err)
	if refused := asRefusal(err); refused != nil {
		p.refusals.note(refused.target.String())
		status, text = http.StatusForbidden, p.refusals.text(refused)
	}
	text = strings.Map(printable, text)
	if r.Method == http.MethodConnect {
		answerConnect(w, status, text)
		return
	}
	answer(w, status, text)
}

func printable(r rune) rune {
	if r < ' ' || r == 0x7f {
		return '?'
	}
	return r
}

// answer sends a status and one line.
func answer(w http.ResponseWriter, status int, line string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, line+"\n") // the program may be gone
}

// answerConnect sends a status with the line as its reason phrase: Go, npm and
// Python show only the phrase when CONNECT fails.
func answerConnect(w http.ResponseWriter, status int, line string) {
	c, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		if !errors.Is(err, http.ErrHijacked) {
			answer(w, status, line)
		}
		return
	}
	defer c.Close() //nolint:errcheck // the answer was sent or cannot be
	_, _ = fmt.Fprintf(c, "HTTP/1.1 %d %s\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s\n",
		status, line, len(line)+1, line) // the program may be gone
}
