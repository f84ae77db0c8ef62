package scripted

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"time"

	"gopkg.in/yaml.v3"
)

// script is a parsed script.
type script struct {
	Window        int            `yaml:"window"` // context window of each model in tokens, 0 if unknown
	Conversations []conversation `yaml:"conversations"`
}

// conversation is the model's part of some conversations.
type conversation struct {
	Match pattern `yaml:"match"` // for the system prompt and the first message
	Model pattern `yaml:"model"` // for the ID of the model
	Again pattern `yaml:"again"` // if the model's last input matches, the previous turn is played again
	Turns []turn  `yaml:"turns"`
}

// turn is one answer of the model.
type turn struct {
	Expect    pattern `yaml:"expect"` // for the model's input since its last answer
	Reasoning string  `yaml:"reasoning"`
	Text      string  `yaml:"text"`
	Tools     []call  `yaml:"tools"`
	Reason    string  `yaml:"reason"` // why the turn ended, if that does not follow from its tools: length, refusal
	Usage     *usage  `yaml:"usage"`

	Fail  string `yaml:"fail"`  // the turn fails with this error
	Stall bool   `yaml:"stall"` // the turn never answers
	Limit *limit `yaml:"limit"` // the API rejects the request
}

// usage is the usage of a turn.
type usage struct {
	Input      int64   `yaml:"input"`
	Output     int64   `yaml:"output"`
	CacheRead  int64   `yaml:"cache_read"`
	CacheWrite int64   `yaml:"cache_write"`
	USD        float64 `yaml:"usd"`
}

// limit is a rejection because of a rate limit.
type limit struct {
	Reason string   `yaml:"reason"`
	After  duration `yaml:"after"`
}

// duration is a time.Duration in the form 1m30s.
type duration time.Duration

// UnmarshalYAML implements yaml.Unmarshaler.
func (d *duration) UnmarshalYAML(n *yaml.Node) error {
	parsed, err := time.ParseDuration(n.Value)
	*d = duration(parsed)
	return at(n, err)
}

// call is a tool call.
type call struct {
	Name  string         `yaml:"name"`
	Input map[string]any `yaml:"input"`
}

// pattern is a regular expression in which a dot also matches newlines. The zero value matches everything.
type pattern struct {
	text string
	re   *regexp.Regexp
}

// UnmarshalYAML implements yaml.Unmarshaler.
func (p *pattern) UnmarshalYAML(n *yaml.Node) (err error) {
	p.text = n.Value
	p.re, err = regexp.Compile("(?s)" + n.Value)
	return at(n, err)
}

func (p pattern) matches(text string) bool { return p.re == nil || p.re.MatchString(text) }

func at(n *yaml.Node, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("line %d: %w", n.Line, err)
}

func parse(data []byte) (script, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	decoder.KnownFields(true)
	var s script
	if err := decoder.Decode(&s); err != nil && !errors.Is(err, io.EOF) {
		return script{}, err
	}
	if len(s.Conversations) == 0 {
		return script{}, errors.New("the script has no conversations")
	}
	return s, nil
}
