package fakeclaude

// inbox holds the incoming messages of the CLI.
type inbox struct {
	from <-chan prompt
	tell bool // --replay-user-messages
	out  *output
	seen map[string]bool // uuids
}

func newInbox(tell bool, out *output, came func()) *inbox {
	return &inbox{from: readInput(came), tell: tell, out: out, seen: map[string]bool{}}
}

// first waits for one message or for the end of the input.
func (i *inbox) first() (prompt, bool) {
	for came := range i.from {
		if i.isNew(came) {
			return came, true
		}
	}
	return prompt{}, false
}

// next returns the message to process after a result: all waiting messages joined to one,
// or the next message to arrive. It reports the joined messages except the last,
// if they have an ID.
func (i *inbox) next() (prompt, bool) {
	all := i.waiting()
	if len(all) == 0 {
		return i.first()
	}
	last := all[len(all)-1]
	if last.err != nil {
		return last, true
	}
	joined := prompt{uuid: last.uuid}
	for n, one := range all {
		if n > 0 {
			joined.endLine()
		}
		joined.blocks = append(joined.blocks, one.blocks...)
		if one.uuid != "" && n < len(all)-1 {
			i.taken(one)
		}
	}
	return joined, true
}

// waiting returns the messages that have arrived but were not processed.
func (i *inbox) waiting() []prompt {
	var all []prompt
	for {
		select {
		case came, open := <-i.from:
			if !open {
				return all
			}
			if i.isNew(came) {
				all = append(all, came)
			}
		default:
			return all
		}
	}
}

// isNew reports whether the message is new. Like the real CLI, it acknowledges a
// known message at once and ignores it otherwise.
func (i *inbox) isNew(came prompt) bool {
	if came.uuid == "" {
		return true
	}
	if i.seen[came.uuid] {
		i.taken(came)
		return false
	}
	i.seen[came.uuid] = true
	return true
}

// taken reports that a message is in the conversation.
func (i *inbox) taken(p prompt) {
	if i.tell {
		i.out.event("user", object{
			"message": message{"user", p.blocks}, "parent_tool_use_id": nil, "uuid": p.uuid, "isReplay": true,
		})
	}
}
