package session_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/coven-run/coven/internal/session"
)

func said(t *testing.T, s *session.Session, conversation string) (all []string) {
	t.Helper()
	messages, err := s.Conversation(conversation)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range messages {
		text := m.ID + " " + m.Role + ":"
		for _, p := range m.Parts {
			text += " " + p.Text + string(p.Input)
		}
		all = append(all, text)
	}
	return all
}

// A conversation consists of the completely recorded messages, in any state of the file after a crash.
func TestConversation(t *testing.T) {
	root := t.TempDir()
	s, err := session.Create(root, "t", "query", time.Now)
	must(t, err)
	call := session.Part{Type: "tool_call", ID: "1", Tool: "read", Input: json.RawMessage(`{"n":12345678901234567890,"b":"<a>"}`)}
	must(t, s.Record("a", "c1", session.Message{ID: "m1", Role: "user", Parts: []session.Part{{Type: "text", Text: "Do it."}}}))
	must(t, s.Record("a", "c2", session.Message{ID: "m2", Role: "user", Parts: []session.Part{{Type: "text", Text: "Other."}}}))
	must(t, s.Say(session.Part{Type: "snapshot", ID: "1"}))
	must(t, s.Record("a", "c1", session.Message{ID: "m3", Role: "assistant", Parts: []session.Part{{Type: "text", Text: "Yes."}, call}}))
	must(t, s.Record("a", "c1", session.Message{ID: "m4", Role: "user"}))
	want := []string{"m1 user: Do it.", `m3 assistant: Yes. {"n":12345678901234567890,"b":"\u003ca\u003e"}`, "m4 user: "}
	if got := said(t, s, "c1"); !reflect.DeepEqual(got, want) {
		t.Errorf("%q", got)
	}
	if got := said(t, s, ""); got != nil {
		t.Errorf("%q", got)
	}
	file := filepath.Join(s.Dir, "messages.jsonl")
	whole, err := os.ReadFile(file)
	must(t, err)
	begin := len(whole)
	must(t, s.Record("a", "c1", session.Message{ID: "m5", Role: "assistant", Parts: []session.Part{{Type: "text", Text: "one"}, {Type: "text", Text: "two"}}}))
	must(t, s.Close())
	whole, err = os.ReadFile(file)
	must(t, err)
	for cut := begin; cut < len(whole)-1; cut++ { // at every byte of the last message; only the line feed may be missing
		must(t, os.WriteFile(file, whole[:cut], 0o600))
		s, err := session.Open(root, s.ID, time.Now)
		must(t, err)
		if got := said(t, s, "c1"); !reflect.DeepEqual(got, want) {
			t.Fatalf("cut at %d: %q", cut, got)
		}
		must(t, s.Record("a", "c1", session.Message{ID: "m6", Role: "user", Parts: []session.Part{{Type: "text", Text: "again"}}}))
		must(t, s.Say(session.Part{Type: "text", Text: "not of it"}))
		if got := said(t, s, "c1"); !reflect.DeepEqual(got, append(want[:len(want):len(want)], "m6 user: again")) {
			t.Fatalf("after a cut at %d: %q", cut, got)
		}
		must(t, s.Close())
	}
}

// Long parts of an agent CLI are shortened. Long lines of the file are skipped without being read into memory, and the
// file does not grow without end.
func TestLongMessages(t *testing.T) {
	root := t.TempDir()
	s, err := session.Create(root, "t", "query", time.Now)
	must(t, err)
	long := strings.Repeat("é", 1<<20)
	must(t, s.Say(session.Part{Type: "text", Text: long, Input: json.RawMessage(`"` + long + `"`)}))
	must(t, s.Say(session.Part{Type: "text", Text: "short"}))
	file := filepath.Join(s.Dir, "messages.jsonl")
	info, err := os.Stat(file)
	must(t, err)
	must(t, os.Truncate(file, info.Size()+400<<20)) // a line of 400 MB
	for _, text := range []string{"joined to the long line", "last"} {
		must(t, s.Record("a", "c", session.Message{ID: text, Role: "user", Parts: []session.Part{{Type: "text", Text: text}}}))
	}
	must(t, s.Say(session.Part{Type: "text", Text: "nobody needs more"}))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	parts, err := session.Parts(s.Dir)
	must(t, err)
	runtime.ReadMemStats(&after)
	if len(parts) != 3 || len(parts[0].Text) > 1<<20+100 || !strings.HasSuffix(parts[0].Text, "… (2097152 bytes in total)") || parts[1].Text != "short" || parts[2].Text != "last" {
		t.Errorf("%d parts, %.50v", len(parts), parts)
	}
	if got := after.TotalAlloc - before.TotalAlloc; got > 600<<20 {
		t.Errorf("%d MB were allocated", got>>20)
	}
	must(t, os.Truncate(file, 512<<20))
	if err := s.Record("a", "c", session.Message{ID: "more", Role: "user"}); err == nil {
		t.Error("the file grows without end")
	}
}
