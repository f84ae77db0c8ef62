// Package convert reads the settings of other programs that run agents in worktrees, for coven init --from.
package convert

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/coven-run/coven/internal/config"
	"github.com/coven-run/coven/internal/text/shellword"
)

// Settings are settings of another program as coven's. An empty one was not set there, or has no counterpart.
type Settings struct {
	Provider string   // provider
	Model    string   // default_model
	Branch   string   // worktree.branch
	Left     []string // settings without a counterpart, each with the reason
}

// ClaudeSquadFile is the file with the settings of claude-squad, below the home directory.
const ClaudeSquadFile = ".claude-squad/config.json"

// providers are the programs that claude-squad starts and that are providers of the same name.
var providers = []string{"claude", "codex", "qwen"}

// ClaudeSquad reads the settings of claude-squad. Its README describes default_program and profiles, and the comments in
// its source the other keys. user is the name of the user.
func ClaudeSquad(text []byte, user string) (Settings, error) {
	var keys map[string]json.RawMessage
	var known struct {
		Program  string `json:"default_program"`
		Yes      bool   `json:"auto_yes"`
		Prefix   string `json:"branch_prefix"`
		Profiles []struct {
			Name    string `json:"name"`
			Program string `json:"program"`
		} `json:"profiles"`
	}
	if err := json.Unmarshal(text, &keys); err != nil {
		return Settings{}, fmt.Errorf("read the settings of claude-squad: %w", err)
	}
	if err := json.Unmarshal(text, &known); err != nil {
		return Settings{}, fmt.Errorf("read the settings of claude-squad: %w", err)
	}
	var s Settings
	program := known.Program
	for _, p := range known.Profiles {
		if p.Name == known.Program {
			program = p.Program
		} else {
			s.leave("profile %s: choose another provider or model with coven run --provider, --model", p.Name)
		}
	}
	s.program(program)
	s.branch(known.Prefix, user)
	if known.Yes {
		s.leave("auto_yes: rules decide about the calls of agents, see coven help agent")
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		switch key {
		case "default_program", "auto_yes", "branch_prefix", "profiles":
		case "daemon_poll_interval":
			s.leave("daemon_poll_interval: coven has no daemon")
		default:
			s.leave("%s: coven does not know this setting", key)
		}
	}
	return s, nil
}

func (s *Settings) leave(format string, args ...any) {
	s.Left = append(s.Left, fmt.Sprintf(format, args...))
}

// program converts the command line of an agent.
func (s *Settings) program(line string) {
	words := literals(line)
	if len(words) == 0 {
		if line != "" {
			s.leave("default_program %s: it is not a plain command line", line)
		}
		return
	}
	name := path.Base(words[0])
	if !slices.Contains(providers, name) {
		s.leave("default_program %s: coven has no provider of this name, see coven help providers", line)
		return
	}
	s.Provider = name
	var rest []string
	for i := 1; i < len(words); i++ {
		model, given := strings.CutPrefix(words[i], "--model=")
		switch {
		case given:
			s.Model = model
		case words[i] == "--model" && i+1 < len(words):
			i++
			s.Model = words[i]
		default:
			rest = append(rest, words[i])
		}
	}
	if len(rest) > 0 {
		s.leave("default_program: coven chooses the arguments of %s, without %s", name, strings.Join(rest, " "))
	}
}

// branch converts the prefix of branches.
func (s *Settings) branch(prefix, user string) {
	if prefix == "" {
		return
	}
	branch := prefix + "{task}"
	if prefix == strings.ToLower(user)+"/" {
		branch = "{user}/{task}"
	}
	if err := config.CheckBranch(branch); err != nil {
		s.leave("branch_prefix %s: %v", prefix, err)
		return
	}
	s.Branch = branch
}

// literals returns the words of a command line, or nil if a shell would change any of them.
func literals(line string) (words []string) {
	parsed, err := shellword.Words(line)
	if err != nil {
		return nil
	}
	for _, w := range parsed {
		text := w.Lit()
		if text == "" || strings.ContainsAny(text, `\*?[~`) {
			return nil
		}
		words = append(words, text)
	}
	return words
}
