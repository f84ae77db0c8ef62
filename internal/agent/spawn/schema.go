package spawn

// Schema is the JSON schema of the arguments of spawn_agent, a Request.
const Schema = `{"type":"object","properties":{
"agent":{"type":"string","description":"name of the agent"},
"task":{"type":"string","description":"everything that the agent must know: it sees nothing of this conversation"},
"permissions":{"type":"array","items":{"type":"string"},"description":"restrict it to these permissions; default: those of its definition and yours"},
"model":{"type":"string","description":"sonnet, haiku, opus or a full model id; default: that of its definition"},
"task_id":{"type":"string","description":"a short name for the record"}},
"required":["agent","task"],"additionalProperties":false}`

// ApprovalSchema is the JSON schema of the arguments of request_approval, an ApprovalRequest.
const ApprovalSchema = `{"type":"object","properties":{
"action":{"type":"string","minLength":1,"description":"what you want to do, in a line"},
"reason":{"type":"string","description":"why"},
"reversible":{"type":"boolean","description":"whether it can be undone completely"}},
"required":["action","reason"],"additionalProperties":false}`

// ApprovalRequest is an agent's request for a person's approval.
type ApprovalRequest struct {
	Action     string `json:"action"` // one line
	Reason     string `json:"reason"`
	Reversible bool   `json:"reversible"` // whether it can be undone completely
}

// SubtaskSchema is the JSON schema of the arguments of subtask, a Request with an optional agent.
const SubtaskSchema = `{"type":"object","properties":{
"task":{"type":"string","minLength":1,"description":"everything that the agent must know: it sees nothing of this conversation"},
"agent":{"type":"string","minLength":1,"description":"name of the agent; default: build"}},
"required":["task"],"additionalProperties":false}`
