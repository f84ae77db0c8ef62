package web

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// reader reads the events of a stream as a browser does: it remembers the last id, and ignores an event that is cut off.
type reader struct {
	last  string
	lines []string
}

// read reads until done, or until the stream ends.
func (r *reader) read(body io.Reader, done func() bool) {
	scanner := bufio.NewScanner(body)
	kind, id, data := "", "", []string{}
	for scanner.Scan() {
		field, value, _ := strings.Cut(scanner.Text(), ": ")
		switch {
		case scanner.Text() == "":
			if kind == "line" {
				r.last, r.lines = id, append(r.lines, strings.Join(data, "\n"))
			}
			kind, id, data = "", "", nil
			if done() {
				return
			}
		case field == "event":
			kind = value
		case field == "id":
			id = value
		case field == "data":
			data = append(data, value)
		}
	}
}

// A connection that is cut at a random byte, and a server that ends, lose no event and send none twice.
func TestCutConnections(t *testing.T) {
	s := newSite(t).login()
	const all = 400
	var written []string
	go func() {
		for i := 0; i < all; i += 20 {
			var texts []string
			for n := range 20 {
				texts = append(texts, fmt.Sprintf("event %d", i+n+1))
			}
			writeEvents(t, s, "s1", i, texts...)
			s.source.changed <- struct{}{}
		}
	}()
	for i := range all {
		written = append(written, fmt.Sprintf("warning: event %d", i+1))
	}
	random, r, cuts := rand.New(rand.NewPCG(1, 37)), &reader{}, 0
	for ; len(r.lines) < all; cuts++ {
		body := s.open(t, "task=app-1&session=s1", r.last)
		enough := len(r.lines) + 1 + random.IntN(30)
		r.read(io.LimitReader(body, int64(100+random.IntN(3000))), func() bool { return len(r.lines) >= min(enough, all) })
		_ = body.Close()
		if cuts%5 == 4 { // the server is started again, at the same address
			s.again(t)
		}
	}
	if got, want := strings.Join(r.lines, "\n"), strings.Join(written, "\n"); got != want {
		t.Errorf("%d events:\n%s", len(r.lines), got)
	}
	t.Log(cuts, "connections")
}

// again ends the server, and starts another one at the same address. The source of events goes on.
func (s *site) again(t *testing.T) {
	t.Helper()
	s.stop()
	s.stop = s.serve(s.options, s.host)
}

// A page that shows an old version is told so, also if the change came before its stream. One that is up to date is not.
func TestChanged(t *testing.T) {
	s := newSite(t).login()
	next := func(at string) (version string, took time.Duration) {
		body := s.open(t, "at="+at, "")
		defer body.Close() //nolint:errcheck // read only
		scanner, began := bufio.NewScanner(body), time.Now()
		beats := 0
		for scanner.Scan() {
			if version, isChange := strings.CutPrefix(scanner.Text(), "data: "); isChange {
				return version, time.Since(began)
			}
			if scanner.Text() == ":" {
				if beats++; beats == 1 && at != "" {
					go func() { s.source.changed <- struct{}{} }()
				}
			}
		}
		t.Fatal("the stream ended")
		return "", 0
	}
	first, _ := next("")
	second, _ := next(first)
	if second == first {
		t.Error(first, second)
	}
	if third, _ := next(first); third != second {
		t.Error("a page that missed a change got", third, "and not", second)
	}
	s.post("/", "/do/R", 303) // the end of its command is a change
	if fourth, _ := next(second); fourth == second {
		t.Error("the end of a command is no change")
	}
}

// A change is reported, and whether a page that is visible shows it.
func TestWatched(t *testing.T) {
	reported := make(chan struct{}, 1)
	s := newSite(t, func(o *Options) { o.Changed = func() { reported <- struct{}{} } }).login()
	change := func() bool {
		s.source.changed <- struct{}{}
		<-reported
		return s.Watched()
	}
	if change() {
		t.Error("there is no page")
	}
	body := s.open(t, "at=", "")
	if !change() {
		t.Error("a page is visible")
	}
	if err := body.Close(); err != nil {
		t.Fatal(err)
	}
	for change() { // until the server finds out
	}
}
