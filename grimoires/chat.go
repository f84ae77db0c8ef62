package grimoires

import "fmt"

// Chat is the part of a plan that describes a chat.
type Chat struct {
	Message string `yaml:"message"` // the first message; empty if it has not been written yet
	// Conversation is the ID of the conversation that the first message continues. It may be empty.
	Conversation string `yaml:"conversation,omitempty"`
}

// chatGrimoire is the workflow of a chat. Its steps are repeated for each message: the agent answers, and
// the merge step waits for the next message or for approval of the change. The chat as a whole has no time
// limit. The workflow is not in a library, because it can only be started with a chat.
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
