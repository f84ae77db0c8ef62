package pullrequest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coven-run/coven/internal/attestation"
	"github.com/coven-run/coven/internal/event"
)

// record is a journal of events.
type record []event.Event

func (r *record) add(t *testing.T, kind event.Type, path string, data any) {
	t.Helper()
	text, err := json.Marshal(data)
	if err != nil {
		t.Fatal(err)
	}
	*r = append(*r, event.Event{Seq: int64(len(*r) + 1), Time: time.Unix(1, 0), Type: kind, Path: path, Data: text})
}

func (r *record) All(types ...event.Type) (found []event.Event) {
	for _, e := range *r {
		if slices.Contains(types, e.Type) {
			found = append(found, e)
		}
	}
	return found
}

func (r *record) At(string, ...event.Type) []event.Event { return nil }

func (r *record) Last(types ...event.Type) (e event.Event, ok bool) {
	if all := r.All(types...); len(all) > 0 {
		return all[len(all)-1], true
	}
	return e, false
}

// message is a change with a message.
type message struct {
	Work
	text string
}

func (m message) Message() string { return m.text }

func id(digit string) string { return strings.Repeat(digit, 40) }

// textOf returns the text of a pull request whose check has a command.
func textOf(t *testing.T, command string, more int) string {
	t.Helper()
	journal := &record{}
	receipt := event.Receipt{Command: command, Tree: id("2"), Duration: 1500 * time.Millisecond, LogPart: event.LogPart{Sum: strings.Repeat("a", 64)}}
	journal.add(t, event.CheckEnded, "land#1", receipt)
	for i := range more {
		receipt.Command = fmt.Sprint("make ", i)
		journal.add(t, event.CheckEnded, "land#1", receipt)
	}
	journal.add(t, event.ReviewGiven, "review#1", map[string]string{"reviewer": "style", "verdict": "pass", "tree": id("2")})
	l := &Landing{Task: "t-1", Session: "2026-01-01-one", Journal: journal, Work: message{text: "A title\n\nMore about it."}}
	return l.text(event.Landing{Target: "refs/heads/main", Old: id("1"), Tip: id("3"), Tree: id("2")})
}

// The text of a pull request has the receipt of its change, which others can read.
func TestReceiptInText(t *testing.T) {
	text := textOf(t, "make ```test</details>", 0)
	_, after, ok := strings.Cut(text, "<details><summary>Receipt of commit `"+short(id("3"))+"`</summary>\n\n```json\n")
	statement, after, closed := strings.Cut(after, "\n```\n")
	if !ok || !closed || !strings.Contains(after, "\n</details>\n") || !strings.HasPrefix(text, "More about it.") {
		t.Fatalf("no receipt:\n%s", text)
	}
	s, err := attestation.Parse(statement + "\n")
	if err != nil || s.Commit() != id("3") || s.Tree() != id("2") {
		t.Fatalf("%v: %+v", err, s)
	}
	p := s.Predicate
	if p.Task != "t-1" || p.Strategy != "pull-request" || p.Old != id("1") || len(p.Checks) != 1 || !p.Checks[0].Required || len(p.Reviews) != 1 || p.Approval.Required {
		t.Errorf("%+v", p)
	}
}

// A receipt that is too large, or whose text hides something, is named by its hash.
func TestReceiptTooLarge(t *testing.T) {
	for name, text := range map[string]string{"large": textOf(t, "make", 60), "hidden": textOf(t, "make \u202etset", 0)} {
		if strings.Contains(text, "```json") || !strings.Contains(text, " bytes and the sha256 `") || len(text) > 8<<10 {
			t.Errorf("%s:\n%s", name, text)
		}
	}
}

// Without all facts, there is no receipt.
func TestNoReceipt(t *testing.T) {
	l := &Landing{Task: "t-1", Session: "s", Journal: &record{}, Work: message{text: "A title"}}
	if text := l.text(event.Landing{Target: "refs/heads/main", Old: "old", Tip: "tip", Tree: "tree"}); strings.Contains(text, "<details>") {
		t.Error(text)
	}
}
