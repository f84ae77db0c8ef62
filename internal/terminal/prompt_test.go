package terminal

import (
	"testing"

	tea "charm.land/bubbletea/v2"
)

// Input after the answer is ignored: "later" is the key l and does not approve.
func TestOnlyTheFirstAnswerCounts(t *testing.T) {
	l := newLive(t, newWindow(80, 24))
	c := &Choice{Question: "bd-1", Options: []Option{{Key: "a", Word: "approve"}, {Key: "l", Word: "later"}}}
	l.prompt = c
	var question tea.Model = asked{live: l}
	var last tea.Cmd
	for i, r := range "xlater" {
		var cmd tea.Cmd
		question, cmd = question.Update(tea.KeyPressMsg{Code: r, Text: string(r)})
		if quits := cmd != nil; quits != (i == 1) {
			t.Errorf("key %c ends the question: %v", r, quits)
		}
		if cmd != nil {
			last = cmd
		}
	}
	if c.Answer != "l" {
		t.Errorf("answer %q, want l", c.Answer)
	}
	if _, quit := last().(tea.QuitMsg); !quit {
		t.Error("the answer does not end the question")
	}
}
