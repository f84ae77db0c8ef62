package web

import (
	"bufio"
	"fmt"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/terminal"
)

// streamEvents sends an event "changed" if the page may show something old: at is the version that the browser has. With a task
// and a session, it also sends the session's events as lines of text. Their id is the sequence number of the event: a browser
// names the last one that it has got, and continues after it.
func (s *Server) streamEvents(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	out := &stream{w: bufio.NewWriter(w), control: http.NewResponseController(w), version: query.Get("at")}
	if task := query.Get("task"); task != "" {
		c, err := s.options.Source.Find(task)
		if err != nil || c.View.ID != query.Get("session") || c.View.Dir == "" {
			w.WriteHeader(http.StatusNoContent) // the browser does not try again
			return
		}
		out.tail = event.NewTail(filepath.Join(c.View.Dir, "events.jsonl"))
		out.seen = after(r.Header.Get("Last-Event-ID"), query.Get("after"))
	}
	if !s.openStream() {
		refuse(w, http.StatusServiceUnavailable, "too many pages are open")
		return
	}
	defer s.closeStream()
	w.Header().Set("Content-Type", "text/event-stream")
	_ = out.control.SetReadDeadline(time.Time{}) // the request has been read
	_, _ = out.w.WriteString("retry: 1000\n\n")  // the flush reports it
	ticker := time.NewTicker(s.beat)
	defer ticker.Stop()
	for {
		version, changed := s.hub.version()
		if err := out.send(version); err != nil {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-changed:
		case <-ticker.C:
			_, _ = out.w.WriteString(":\n\n") // finds out that the browser has gone
		}
	}
}

// after returns the larger of two sequence numbers. Invalid ones are 0.
func after(last, given string) int64 {
	a, _ := strconv.ParseInt(last, 10, 64)
	b, _ := strconv.ParseInt(given, 10, 64)
	return max(a, b, 0)
}

func (s *Server) openStream() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.streams >= maxStreams {
		return false
	}
	s.streams++
	return true
}

func (s *Server) closeStream() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.streams--
}

// Watched reports whether a page is visible: a hidden one has no stream.
func (s *Server) Watched() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.streams > 0
}

// stream is a connection for events.
type stream struct {
	w       *bufio.Writer
	control *http.ResponseController
	version string // that the browser has
	tail    *event.Tail
	seen    int64 // sequence number of the last event that the browser has
}

// send sends the new events.
func (o *stream) send(version string) error {
	if err := o.control.SetWriteDeadline(time.Now().Add(slowest)); err != nil {
		return err
	}
	if o.tail != nil {
		if err := o.tail.Next(o.line); err != nil {
			return err
		}
	}
	if version != o.version {
		o.version = version
		_, _ = fmt.Fprintf(o.w, "event: changed\ndata: %s\n\n", version) // the flush reports it
	}
	if err := o.w.Flush(); err != nil {
		return err
	}
	return o.control.Flush()
}

// line sends an event as lines of text, unless the browser has it.
func (o *stream) line(e event.Event) error {
	text := strings.TrimRight(visible(terminal.Lines(e)), "\n")
	if e.Seq <= o.seen || text == "" {
		return nil
	}
	o.seen = e.Seq
	_, err := fmt.Fprintf(o.w, "id: %d\nevent: line\ndata: %s\n\n", e.Seq, strings.ReplaceAll(text, "\n", "\ndata: "))
	return err
}
