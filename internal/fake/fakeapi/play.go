package fakeapi

import (
	"strings"
	"sync"
)

// choose finds the turn for a request. It is stateless: the turn is the number of
// answers already in the request, so a killed and resumed conversation continues where
// it was.
func (s Scenario) choose(request Request) (conversation, turn int) {
	prompt := firstPrompt(request.Messages)
	for i, candidate := range s.Conversations {
		if strings.Contains(prompt, candidate.Match) {
			return i, answers(request.Messages)
		}
	}
	return -1, answers(request.Messages)
}

// turn returns the turn to play. After the end of a script it is the text "done".
func (s Scenario) turn(conversation, turn int) Turn {
	if conversation >= 0 && turn < len(s.Conversations[conversation].Turns) {
		return s.Conversations[conversation].Turns[turn]
	}
	return Turn{Text: "done"}
}

func firstPrompt(messages []Message) string {
	for _, message := range messages {
		if text := message.Text(); message.Role == "user" && text != "" {
			return text
		}
	}
	return ""
}

// answers counts the assistant messages that came from a model. The CLI adds
// some messages, such as after an interruption or an API error.
func answers(messages []Message) int {
	count := 0
	for _, message := range messages {
		if message.Role == "assistant" && !synthetic(message) {
			count++
		}
	}
	return count
}

func synthetic(message Message) bool {
	text := textOf(message.Content)
	for _, block := range message.Content {
		if block.Type == "tool_use" {
			return false
		}
	}
	return text == "No response requested." || text == "Got it. Thanks for the context!" || strings.HasPrefix(text, "API Error")
}

// failures records which scripted failures were already played.
type failures struct {
	mu     sync.Mutex
	played map[[2]int]int
}

func newFailures() *failures { return &failures{played: map[[2]int]int{}} }

// next returns the next failure of a turn, or false if there is none left.
func (f *failures) next(conversation, turn int, script []Failure) (Failure, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	key := [2]int{conversation, turn}
	seen := 0
	for _, failure := range script {
		seen += max(failure.Times, 1)
		if f.played[key] < seen {
			f.played[key]++
			return failure, true
		}
	}
	return Failure{}, false
}
