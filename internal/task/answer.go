package task

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"strings"

	"github.com/coven-run/coven/internal/text/oneline"
)

var errNotJSON = errors.New("the output is not a JSON list of issues")

// payload unwraps an answer. Programs print an array, an object, or {"data": either}. bd v2
// always prints the last form.
func payload(answer []byte) json.RawMessage {
	var envelope struct {
		ID   json.RawMessage `json:"id"`
		Data json.RawMessage `json:"data"`
	}
	if json.Unmarshal(answer, &envelope) == nil && envelope.ID == nil && envelope.Data != nil {
		return envelope.Data
	}
	return bytes.TrimSpace(answer)
}

// tasks decodes the issues of an answer.
func (o *output) tasks() ([]Task, error) {
	all, _, err := o.issues()
	return all, err
}

// issues decodes the issues of an answer and, separately, those of their dependencies that
// the answer contains in full. It omits tombstones.
func (o *output) issues() (all, near []Task, err error) {
	raw := payload(o.stdout)
	var list []json.RawMessage
	switch {
	case bytes.HasPrefix(raw, []byte("{")):
		list = []json.RawMessage{raw}
	case json.Unmarshal(raw, &list) != nil:
		return nil, nil, o.notIssues()
	}
	all = []Task{}
	for _, one := range list {
		d, err := newDecoder(one)
		if err != nil {
			return nil, nil, o.notIssues()
		}
		t, err := d.task()
		if err != nil {
			return nil, nil, &ProgramError{Program: o.program, Args: o.args, ExitCode: 0, Message: err.Error(), cause: errNotJSON}
		}
		if t.Status == statusTombstone {
			continue
		}
		all, near = append(all, t), append(near, d.near()...)
	}
	return all, near, nil
}

// near returns the dependencies of a line that are complete issues.
func (d *decoder) near() []Task {
	var list []json.RawMessage
	if json.Unmarshal(d.raw("dependencies"), &list) != nil {
		return nil
	}
	var near []Task
	for _, one := range list {
		inner, err := newDecoder(one)
		if err != nil || inner.raw("id") == nil || inner.raw("status") == nil {
			continue
		}
		if t, err := inner.task(); err == nil {
			near = append(near, t)
		}
	}
	return near
}

// notIssues returns the error for an answer that is not JSON.
func (o *output) notIssues() error {
	return &ProgramError{Program: o.program, Args: o.args, Message: oneline.Clip(firstLine(string(o.stdout)), maxMessage), cause: errNotJSON}
}

// complaint returns the program's reason for a failure: a JSON error on either
// stream, or else the most informative line of standard error.
func complaint(stdout, stderr []byte) string {
	for _, stream := range [][]byte{stdout, stderr} {
		if text := jsonError(stream); text != "" {
			return oneline.Clip(firstLine(text), maxMessage)
		}
	}
	best, rank := "", 0
	for line := range strings.Lines(string(stderr)) {
		line = strings.TrimSpace(line)
		lower := strings.ToLower(line)
		r := 2
		switch {
		case line == "":
			r = 0
		case strings.HasPrefix(lower, "error"), strings.HasPrefix(lower, "cannot"):
			r = 3
		case strings.HasPrefix(lower, "warning"), strings.HasPrefix(lower, "note"), strings.HasPrefix(lower, "hint"), strings.HasPrefix(line, "⚠"):
			r = 1
		}
		if r > rank {
			best, rank = line, r
		}
	}
	if best == "" {
		best = firstLine(string(stdout))
	}
	return oneline.Clip(strings.TrimPrefix(best, "Error: "), maxMessage)
}

// jsonError finds {"error": "..."}, {"data": {"error": "..."}} or the {"error":
// {"code", "message"}} of br in a stream that may start with other output.
func jsonError(stream []byte) string {
	for at := 0; at >= 0 && at < len(stream); {
		if stream[at] == '{' {
			var found struct {
				failure
				Data failure `json:"data"`
			}
			if json.NewDecoder(bytes.NewReader(stream[at:])).Decode(&found) == nil {
				return cmp.Or(found.text(), found.Data.text())
			}
		}
		next := bytes.Index(stream[at:], []byte("\n{"))
		if next < 0 {
			return ""
		}
		at += next + 1
	}
	return ""
}

// failure is an error in JSON. bd 1.3 and later report the failure of each issue: error is only a count then.
type failure struct {
	Error  json.RawMessage `json:"error"`
	Failed []struct {
		Error string `json:"error"`
	} `json:"failed"`
}

func (f failure) text() string {
	for _, one := range f.Failed {
		if one.Error != "" {
			return one.Error
		}
	}
	return errorText(f.Error)
}

func errorText(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	var object struct{ Code, Message, Hint string }
	if json.Unmarshal(raw, &object) != nil {
		return ""
	}
	text = object.Message
	if object.Code != "" && text != "" {
		text += " (" + object.Code + ")"
	}
	return text
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return strings.TrimSpace(line)
}

// maxMessage limits the part of a program's message that is shown, in characters.
const maxMessage = 500
