package board

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/session"
)

// A state is announced once, when it is entered. The first states are not.
func TestEdges(t *testing.T) {
	at := time.Date(2026, 1, 2, 15, 0, 0, 0, time.UTC)
	card := func(task string, section Section, reason event.WaitReason, since time.Duration) Card {
		v := session.View{ID: "s-" + task, Task: task}
		v.Status, v.Reason, v.Ended, v.Updated = session.Waiting, reason, at.Add(since), time.Now() // later events change only Updated
		return Card{Section: section, Task: task, View: v}
	}
	a, b := card("a", NeedsYou, event.WaitReview, 0), card("b", Running, "", 0)
	var e Edges
	for i, c := range []struct {
		cards []Card
		want  string
	}{
		{[]Card{a, b}, ""},
		{[]Card{a, card("b", NeedsYou, event.WaitReview, 1)}, "b"},
		{[]Card{card("a", NeedsYou, event.WaitReview, 0), card("b", NeedsYou, event.WaitReview, 1)}, ""},
		{[]Card{card("a", NeedsYou, event.WaitBudget, 0), card("b", NeedsYou, event.WaitReview, time.Second), card("c", NeedsYou, event.WaitMessage, 0)}, "a b"},
		{[]Card{card("a", Waiting, event.WaitBudget, 0)}, ""}, // snoozed
		{[]Card{card("a", NeedsYou, event.WaitBudget, 0), card("d", NeedsYou, event.WaitReview, 0)}, "a d"},
	} {
		var begun []string
		for _, c := range e.Next(c.cards) {
			begun = append(begun, c.Task)
		}
		if got := strings.Join(begun, " "); got != c.want {
			t.Errorf("%d: %q, want %q", i, got, c.want)
		}
	}
	if !e.Needs(card("d", NeedsYou, event.WaitReview, 0)) || e.Needs(card("d", NeedsYou, event.WaitReview, 5)) || e.Needs(b) {
		t.Error("only d needs a person, for its last reason")
	}
	e = Edges{}
	if e.Next(nil); len(e.Next([]Card{a})) != 1 {
		t.Error("the first task is not announced")
	}
	if n := a.Notice(); n.Status != "waiting" || !slices.Contains([]string{"a"}, n.Task) {
		t.Errorf("%+v", n)
	}
}
