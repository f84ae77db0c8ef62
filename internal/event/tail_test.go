package event

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func next(tail *Tail) (events []Event, err error) {
	err = tail.Next(func(e Event) error {
		events = append(events, e)
		return nil
	})
	return events, err
}

// A tail returns each event once, in order, and never an incomplete line.
func TestTail(t *testing.T) {
	file := filepath.Join(t.TempDir(), "events.jsonl")
	tail := NewTail(file)
	if events, err := next(tail); err != nil || events != nil {
		t.Fatalf("before there is a journal: %v, %v", events, err)
	}
	j, err := Open(file, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close() //nolint:errcheck // a test
	seq := int64(0)
	for round := range 3 {
		for range round + 1 {
			if err := j.Append(Event{Type: Warning}, Text{Text: "x"}); err != nil {
				t.Fatal(err)
			}
		}
		events, err := next(tail)
		if err != nil || len(events) != round+1 {
			t.Fatalf("round %d: %d events, %v", round, len(events), err)
		}
		for _, e := range events {
			if seq++; e.Seq != seq {
				t.Errorf("event %d where %d belongs", e.Seq, seq)
			}
		}
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // a test
	if _, err := f.WriteString(`{"v":1,"seq":7,`); err != nil {
		t.Fatal(err)
	}
	if events, err := next(tail); err != nil || len(events) != 0 {
		t.Errorf("half a line: %v, %v", events, err)
	}
	if _, err := f.WriteString("\"type\":\"warning\"}\nnonsense\n"); err != nil {
		t.Fatal(err)
	}
	if events, err := next(tail); err == nil || len(events) != 1 {
		t.Errorf("a damaged line: %v, %v", events, err)
	}
	if events, err := next(tail); err == nil || len(events) != 0 {
		t.Errorf("a damaged line again: %v, %v", events, err)
	}
}
