package fakeclaude

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

// options are the flags of one run.
type options struct {
	version bool
	replay  bool              // report each message when it is taken
	partial bool              // print the pieces of answers
	values  map[string]string // by flag name, without the dashes
	tools   []string
	ask     []string // permissions.ask of --settings
	turns   int      // --max-turns; 0 for no limit
	append  string   // text to append to the system prompt
}

// switches returns the flags without a value, and valued those with a value. Other flags of the real CLI
// are unknown here.
func switches() []string {
	return []string{"print", "verbose", "strict-mcp-config", "version", "replay-user-messages", "include-partial-messages"}
}

func valued() []string {
	return []string{
		"input-format", "output-format", "mcp-config", "permission-prompt-tool", "permission-mode", "tools",
		"settings", "setting-sources", "append-system-prompt", "append-system-prompt-file", "model",
		"session-id", "resume", "max-turns",
	}
}

// long returns the long name of a short flag, or "".
func long(flag string) string {
	return map[string]string{"-p": "print", "-v": "version", "-r": "resume"}[flag]
}

func parseOptions(args []string) (options, error) {
	opts := options{values: map[string]string{}}
	for len(args) > 0 {
		name, value, joined := strings.Cut(args[0], "=")
		args = args[1:]
		key, isLong := strings.CutPrefix(name, "--")
		if !isLong {
			key = long(name)
		}
		switch {
		case slices.Contains(switches(), key) && !joined:
			value = "true"
		case !slices.Contains(valued(), key):
			return opts, fmt.Errorf("error: unknown option '%s'", name)
		case !joined && len(args) == 0:
			return opts, fmt.Errorf("error: option '--%s <value>' argument missing", key)
		case !joined:
			value, args = args[0], args[1:]
		}
		opts.values[key] = value
	}
	opts.version = opts.values["version"] != ""
	opts.replay = opts.values["replay-user-messages"] != ""
	opts.partial = opts.values["include-partial-messages"] != ""
	if opts.version {
		return opts, nil
	}
	return opts, opts.interpret()
}

// interpret checks the values and reads the files that they name.
func (o *options) interpret() error {
	want := map[string]string{"print": "true", "input-format": "stream-json", "output-format": "stream-json", "verbose": "true"}
	for name, value := range want {
		if o.values[name] != value {
			return fmt.Errorf("Error: the fake claude needs --%s %s", name, value)
		}
	}
	if mode := o.values["permission-mode"]; mode != "" && mode != "default" {
		return fmt.Errorf("Error: the fake claude knows no permission mode %q", mode)
	}
	o.tools = strings.FieldsFunc(o.values["tools"], func(r rune) bool { return r == ',' || r == ' ' })
	if value, given := o.values["max-turns"]; given {
		turns, err := strconv.Atoi(value)
		if err != nil || turns < 1 {
			return fmt.Errorf("error: option '--max-turns <turns>' argument '%s' is invalid", value)
		}
		o.turns = turns
	}
	return errors.Join(o.readSettings(), o.readAppended())
}

func (o *options) readSettings() error {
	text := o.values["settings"]
	if text == "" {
		return nil
	}
	data, err := inlineOrFile(text)
	if err != nil {
		return fmt.Errorf("Error: Settings file not found: %s", text)
	}
	var settings struct {
		Permissions struct {
			Ask []string `json:"ask"`
		} `json:"permissions"`
	}
	if err := json.Unmarshal(data, &settings); err != nil {
		return fmt.Errorf("Error: Invalid JSON provided to --settings: %w", err)
	}
	o.ask = settings.Permissions.Ask
	return nil
}

func (o *options) readAppended() error {
	text, hasText := o.values["append-system-prompt"]
	path, hasFile := o.values["append-system-prompt-file"]
	if hasText && hasFile {
		return errors.New("Error: Cannot use both --append-system-prompt and --append-system-prompt-file. Please use only one.") //nolint:staticcheck,revive // the real CLI's words
	}
	if hasFile {
		data, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("Error: Append system prompt file not found: %s", path)
		}
		text = string(data)
	}
	o.append = text
	return nil
}

// inlineOrFile reads a flag whose value is JSON or the path of a file with JSON.
func inlineOrFile(value string) ([]byte, error) {
	if strings.HasPrefix(strings.TrimSpace(value), "{") {
		return []byte(value), nil
	}
	return os.ReadFile(value)
}
