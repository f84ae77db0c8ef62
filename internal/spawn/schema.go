package spawn

// Schema describes the arguments of spawn_agent, a Request.
const Schema = `{"type":"object","properties":{
"agent":{"type":"string","description":"name of the agent"},
"task":{"type":"string","description":"everything that the agent must know: it sees nothing of this conversation"},
"permissions":{"type":"array","items":{"type":"string"},"description":"restrict it to these permissions; default: those of its definition and yours"},
"model":{"type":"string","description":"sonnet, haiku, opus or a full model id; default: that of its definition"},
"task_id":{"type":"string","description":"a short name for the record"}},
"required":["agent","task"],"additionalProperties":false}`

// ApprovalSchema describes the arguments of request_approval, an ApprovalRequest.
const ApprovalSchema = `{"type":"object","properties":{
"action":{"type":"string","minLength":1,"description":"what you want to do, in a line"},
"reason":{"type":"string","description":"why"},
"reversible":{"type":"boolean","description":"whether it can be undone completely"}},
"required":["action","reason"],"additionalProperties":false}`

// ApprovalRequest is what an agent asks a person about.
type ApprovalRequest struct {
	Action     string `json:"action"` // in a line
	Reason     string `json:"reason"`
	Reversible bool   `json:"reversible"` // it can be undone completely
}

// SubtaskSchema describes the arguments of subtask, a Request whose agent may be left out.
const SubtaskSchema = `{"type":"object","properties":{
"task":{"type":"string","minLength":1,"description":"everything that the agent must know: it sees nothing of this conversation"},
"agent":{"type":"string","minLength":1,"description":"name of the agent; default: build"}},
"required":["task"],"additionalProperties":false}`
