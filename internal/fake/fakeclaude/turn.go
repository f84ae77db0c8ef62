package fakeclaude

import (
	"context"
	"errors"
	"maps"
	"time"
)

// turn is the work on one message: answers and tool calls until the model has
// nothing more to do.
type turn struct {
	*run
	opening *prompt // the message; nil once it was reported
	tally   tally
	abort   bool // a denial ended it
	cuts    int  // answers that were cut off and requested again
}

// main returns the exit code to use if this is the last message. An error ends the
// process without a result.
func (t *turn) main(ctx context.Context) (int, error) {
	t.tally.started = time.Now()
	t.api.begun = t.open
	for {
		got, err := t.api.ask(ctx, t.talk.messages, t.show)
		if err != nil || ctx.Err() != nil {
			again, code, err := t.unanswered(ctx, err)
			if again {
				continue
			}
			return code, err
		}
		t.tally.add(got)
		if len(got.calls) == 0 {
			t.finish("success", object{"is_error": false, "result": got.text, "api_error_status": nil, "terminal_reason": "completed"})
			return 0, nil
		}
		err = t.tools.run(ctx, got.calls, t.tell)
		switch {
		case t.term.Load():
			return exitTerm, nil
		case ctx.Err() != nil || t.abort:
			return t.interrupted("[Request interrupted by user for tool use]", "aborted_tools", 1)
		case err != nil:
			return 0, err
		case t.options.turns > 0 && t.tally.turns > t.options.turns:
			return t.turnsUsedUp()
		}
		if err := t.overhear(); err != nil {
			return 0, err
		}
	}
}

// unanswered handles a missing answer. It reports whether to ask the model again;
// otherwise the work on the message has ended.
func (t *turn) unanswered(ctx context.Context, err error) (again bool, code int, _ error) {
	var failed *apiError
	switch {
	case ctx.Err() != nil:
		code, err = t.interrupted("[Request interrupted by user]", "aborted_streaming", 0)
	case errors.As(err, &failed) && failed.started && t.cuts < maxCuts:
		err = t.askForTheRest(failed)
		again = err == nil
	case errors.As(err, &failed):
		code, err = t.apiFailed(failed)
	}
	return again, code, err
}

// show stores and prints one block of an answer.
func (t *turn) show(block, opening object) error {
	if err := t.talk.add("assistant", block); err != nil {
		return err
	}
	t.open()
	message := maps.Clone(opening)
	message["content"] = []object{block}
	t.out.event("assistant", object{"message": message, "parent_tool_use_id": nil})
	return nil
}

// tell stores and prints the outcome of a call.
func (t *turn) tell(out outcome) error {
	if out.denied {
		t.tally.denials = append(t.tally.denials, object{"tool_name": out.call.name, "tool_use_id": out.call.id, "tool_input": out.call.input})
	}
	t.abort = t.abort || out.abort
	if out.fatal != nil {
		t.out.resetTerminal() // before the line, and on the same terminal line
	}
	if err := t.user(out.block()); err != nil {
		return err
	}
	return out.fatal
}

// user stores and prints a block in the user's name.
func (t *turn) user(block object) error {
	if err := t.talk.add("user", block); err != nil {
		return err
	}
	t.tally.turns++
	t.open()
	t.out.event("user", object{"message": message{"user", []object{block}}, "parent_tool_use_id": nil})
	return nil
}

// open reports that the message was taken, directly before the first line about
// it.
func (t *turn) open() {
	if t.opening != nil {
		t.inbox.taken(*t.opening)
		t.opening = nil
	}
}

// overhear adds newly arrived messages to the conversation.
func (t *turn) overhear() error {
	for _, came := range t.inbox.waiting() {
		if came.err != nil {
			return came.err
		}
		said := "The user sent a new message while you were working:"
		for _, block := range came.blocks {
			said += "\n" + text(block, "text")
		}
		if err := t.talk.add("user", textBlock(said)); err != nil {
			return err
		}
		t.inbox.taken(came)
	}
	return nil
}

func (t *turn) interrupted(said, reason string, code int) (int, error) {
	if err := t.user(textBlock(said)); err != nil {
		return 0, err
	}
	t.finish("error_during_execution", object{"is_error": true, "terminal_reason": reason, "errors": []string{"interrupted"}})
	return code, nil
}

func (t *turn) turnsUsedUp() (int, error) {
	t.finish("error_max_turns", object{"is_error": true, "terminal_reason": "max_turns", "errors": []string{"Reached maximum number of turns"}})
	return 1, nil
}

// maxCuts limits the answers that may be cut off while working on one message.
const maxCuts = 3

// askForTheRest continues after an answer that was cut off after a part of it was
// shown. Like the real CLI, it counts the input once and charges it twice.
func (t *turn) askForTheRest(cut *apiError) error {
	t.cuts++
	t.tally.used.Input += cut.used.Input
	t.cost += price(t.api.model, usage{Input: cut.used.Input})
	return t.user(textBlock("Your response above was cut off mid-stream. Resume directly from where it stops — no apology, no recap. " +
		"If none of it survived, answer the request from the start."))
}

// apiFailed prints the error instead of an answer. The subtype is still
// "success".
func (t *turn) apiFailed(failed *apiError) (int, error) {
	said := textBlock(failed.text)
	if err := t.talk.add("assistant", said); err != nil {
		return 0, err
	}
	t.tally.stopReason = "stop_sequence"
	if failed.started {
		t.tally.used.Input += failed.used.Input
		t.cost += price(t.api.model, failed.used)
	}
	t.open()
	t.out.event("assistant", object{
		"message": object{
			"id": newUUID(), "model": "<synthetic>", "role": "assistant", "type": "message", "content": []object{said},
			"stop_reason": "stop_sequence", "stop_sequence": "", "usage": usage{},
		},
		"parent_tool_use_id": nil, "error": failed.kind(),
	})
	fields := object{"is_error": true, "result": failed.text, "api_error_status": nil, "terminal_reason": "api_error"}
	if failed.status != 0 {
		fields["api_error_status"] = failed.status
	}
	t.finish("success", fields)
	return 1, nil
}

// finish prints the result. The cost is that of the process, the rest is that of the message.
func (t *turn) finish(subtype string, fields object) {
	t.stop.Store(nil) // an INT after the result finds the run idle
	t.cost += t.tally.cost()
	fields["total_cost_usd"] = t.cost
	t.out.event("result", t.tally.result(subtype, fields))
}
