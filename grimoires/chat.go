package grimoires

import "fmt"

// Chat is what a plan has of a chat.
type Chat struct {
	Message string `yaml:"message"` // the first one; empty: it is yet to come
	// Conversation is the ID of the one that the first message continues; empty: none.
	Conversation string `yaml:"conversation,omitempty"`
}

// chatGrimoire is the workflow of a chat. Its steps are repeated for each message: the agent
// answers, and the merge step waits for the next message or for approval of the change. The chat as
// a whole has no time limit. It is in no library, because a person can start it only with a message.
const chatGrimoire = `name: chat
description: A conversation with an agent
budget: {usd: 5, tokens: 2000000, turns: 200}
steps:
  - {name: answer, type: agent, prompt: "{{.task.title}}\n", timeout: 1h}
  - {name: land, type: merge}
`

// NewChat returns the workflow of a chat.
func NewChat() *Grimoire {
	g, err := Parse(BuiltIn, []byte(chatGrimoire))
	if err != nil {
		panic(fmt.Errorf("the grimoire of chats: %w", err))
	}
	return g
}
