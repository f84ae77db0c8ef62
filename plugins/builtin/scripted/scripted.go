// Package scripted is a model plugin that plays turns from a YAML file instead of using a model. It is for
// tests, and for trying agents of coven's own loop without an account.
//
// A script contains conversations. It may contain a window: the model's context window in tokens. The first
// conversation that matches the beginning of the actual one is played, turn by turn:
//
//	conversations:
//	  - match: code reviewer       # regular expression
//	    turns:
//	      - text: I look first.
//	        tools:
//	          - {name: read, input: {path: README.md}}
//	      - expect: Hello          # regular expression for the model's last input
//	        text: Done.
//
// The plugin keeps no state: the actual conversation determines the next turn. Therefore any number of
// conversations can take place at the same time, and a conversation can continue in another process.
package scripted

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coven-run/coven/internal/text/lazyregexp"
	"github.com/coven-run/coven/plugins/model"
	"github.com/coven-run/coven/plugins/provider"
)

// Variable is the environment variable with the path of the script.
const Variable = "COVEN_SCRIPT"

// maxScript limits the size of a script, in bytes.
const maxScript = 4 << 20

// Model plays a script.
type Model struct {
	Getenv func(string) string
}

// Turn implements model.Model.
func (m Model) Turn(ctx context.Context, request model.Request, emit func(model.Event) error) error {
	s, err := m.script()
	if err != nil {
		return err
	}
	c, err := s.find(request)
	if err != nil {
		return err
	}
	n := next(request.Messages)
	if c.Again.re != nil && n > 0 && c.Again.matches(lastText(request.Messages)) {
		n--
	}
	if n >= len(c.Turns) {
		return fmt.Errorf("the script has %d turns for this conversation, and this would be turn %d", len(c.Turns), n+1)
	}
	if err := c.Turns[n].play(ctx, n, request, emit); err != nil {
		return fmt.Errorf("turn %d: %w", n+1, err)
	}
	return nil
}

// Models implements model.Lister. It returns the model without a name, the only one for which a script
// defines the window.
func (m Model) Models(context.Context) ([]model.Info, error) {
	s, err := m.script()
	if err != nil {
		return nil, err
	}
	return []model.Info{{Window: s.Window}}, nil
}

func (m Model) script() (script, error) {
	file := m.Getenv(Variable)
	if file == "" {
		return script{}, errors.New("no script: " + Variable + " must be the path of one")
	}
	info, err := os.Stat(file)
	switch {
	case err != nil:
		return script{}, fmt.Errorf("read the script: %w", err)
	case !info.Mode().IsRegular() || info.Size() > maxScript:
		return script{}, fmt.Errorf("the script %s is not a file of at most %d bytes", file, maxScript)
	}
	data, err := os.ReadFile(file) //nolint:gosec // the user chose it
	if err != nil {
		return script{}, fmt.Errorf("read the script: %w", err)
	}
	s, err := parse(data)
	if err != nil {
		return script{}, fmt.Errorf("%s: %w", file, err)
	}
	return s, nil
}

// find returns the conversation to play for a request.
func (s script) find(request model.Request) (conversation, error) {
	beginning := request.System
	if len(request.Messages) > 0 {
		beginning += "\n" + text(request.Messages[0])
	}
	for _, c := range s.Conversations {
		if c.Match.matches(beginning) && c.Model.matches(request.Model) {
			return c, nil
		}
	}
	return conversation{}, fmt.Errorf("the script has no conversation that begins with:\n%s", beginning)
}

// callID returns the ID of a call. Turns and calls count from 0.
func callID(turn, call int) string { return fmt.Sprintf("call_%d_%d", turn+1, call+1) }

var callIDs = lazyregexp.New(`^call_(\d+)_\d+`)

// next returns the number of the next turn of a conversation, from 0. It is the one after the last call,
// whose ID contains the turn's number, so that the beginning of the conversation may be missing.
func next(messages []model.Message) int {
	turns := 0
	for _, m := range messages {
		if m.Role != model.Assistant {
			continue
		}
		turns++
		for _, p := range m.Parts {
			if call, ok := p.(provider.ToolCall); ok {
				if id := callIDs.FindStringSubmatch(call.ID); id != nil {
					turns, _ = strconv.Atoi(id[1])
				}
			}
		}
	}
	return turns
}

// text returns the text in a message, including that of tool results.
func text(m model.Message) string {
	var all []string
	for _, p := range m.Parts {
		switch p := p.(type) {
		case model.Text:
			all = append(all, p.Text)
		case provider.ToolResult:
			all = append(all, p.Text)
		}
	}
	return strings.Join(all, "\n")
}

// play emits the events of a turn.
func (t turn) play(ctx context.Context, n int, request model.Request, emit func(model.Event) error) error {
	if said := lastText(request.Messages); !t.Expect.matches(said) {
		return fmt.Errorf("the script expects %s, and the model was sent:\n%s", t.Expect.text, said)
	}
	switch {
	case t.Fail != "":
		return errors.New(t.Fail)
	case t.Stall:
		<-ctx.Done()
		return context.Cause(ctx)
	case t.Limit != nil:
		limit := provider.Limit{Reason: t.Limit.Reason, Status: 429, After: time.Duration(t.Limit.After)}
		return errors.Join(emit(limit), emit(model.End{Reason: model.Limited}))
	}
	var events []model.Event
	if t.Reasoning != "" {
		events = append(events, model.Reasoning{Text: t.Reasoning, Signature: "scripted"})
	}
	for _, fragment := range strings.SplitAfter(t.Text, " ") { // a real model also streams
		if fragment != "" {
			events = append(events, model.Text{Text: fragment})
		}
	}
	for i, c := range t.Tools {
		if c.Input == nil {
			c.Input = map[string]any{}
		}
		input, err := json.Marshal(c.Input)
		if err != nil {
			return fmt.Errorf("encode the input of %s: %w", c.Name, err)
		}
		events = append(events, provider.ToolCall{ID: callID(n, i), Name: c.Name, Input: input})
	}
	for _, e := range append(events, t.end(request)) {
		if err := emit(e); err != nil {
			return err
		}
	}
	return nil
}

// lastText returns the model's input since its last answer.
func lastText(messages []model.Message) string {
	var said []string
	for _, m := range slices.Backward(messages) {
		if m.Role == model.Assistant {
			break
		}
		said = append(said, text(m))
	}
	slices.Reverse(said)
	return strings.Join(said, "\n")
}

// end returns the end of a turn. If the script contains no usage, four characters count as a token.
func (t turn) end(request model.Request) model.End {
	end := model.End{Reason: model.Done}
	if len(t.Tools) > 0 {
		end.Reason = model.ForTools
	}
	if t.Reason != "" {
		end.Reason = model.Reason(t.Reason)
	}
	if t.Usage != nil {
		end.Usage = provider.Usage{
			InputTokens: t.Usage.Input, OutputTokens: t.Usage.Output, CacheReadTokens: t.Usage.CacheRead, CacheWriteTokens: t.Usage.CacheWrite, CostUSD: t.Usage.USD,
		}
		return end
	}
	sent := len(request.System)
	for _, m := range request.Messages {
		sent += len(text(m))
	}
	end.Usage = provider.Usage{InputTokens: tokens(sent), OutputTokens: tokens(len(t.Reasoning) + len(t.Text))}
	return end
}

func tokens(characters int) int64 { return int64((characters + 3) / 4) }
