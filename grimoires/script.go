package grimoires

import (
	"fmt"
	"strings"

	"github.com/coven-run/coven/internal/config/schema"
	"github.com/coven-run/coven/internal/text/oneline"
	"github.com/coven-run/coven/internal/text/tmpl"
)

// Script is a step that runs a shell command, or the configured checks.
type Script struct {
	Command string            `yaml:"command,omitempty" about:"template of a command for sh -c; values are quoted for the shell"`
	Checks  bool              `yaml:"checks,omitempty" about:"true: run the configured checks, in order"`
	Env     map[string]string `yaml:"env,omitempty" about:"templates by variable"`
	Workdir string            `yaml:"workdir,omitempty" about:"directory in the worktree"` // empty for the top of the worktree
	TTY     bool              `yaml:"tty,omitempty" about:"true: the output of the command is a terminal, not a pipe"`
}

func newScript() Kind { return &Script{} }

// Type implements Kind.
func (*Script) Type() string { return "script" }

func (s *Script) read(r *reader, at position) {
	command, checks := r.doc.Key(at.node, "command"), r.doc.Key(at.node, "checks")
	switch {
	case command.Set() && s.Checks:
		r.doc.Fail(checks, "a script step has a command or checks, not both", "")
	case !command.Set() && !s.Checks:
		r.doc.Fail(at.node, fmt.Sprintf("the script step %q has no command", at.step), "command: a shell command, or checks: true")
	case command.Set() && strings.TrimSpace(s.Command) == "":
		r.doc.Fail(command, "the command is empty", "")
	default:
		r.template(commandTemplate, at.step, s.Command, command)
	}
	if dir := r.doc.Key(at.node, "workdir"); s.Checks && dir.Set() {
		r.doc.Fail(dir, "checks run at the top of the worktree", "cd in the check's own command")
	}
	if tty := r.doc.Key(at.node, "tty"); s.Checks && tty.Set() {
		r.doc.Fail(tty, "the output of checks is a pipe", "script -qec 'COMMAND' /dev/null as the check's own command")
	}
	r.env(at, s.Env)
	r.workdir(at, s.Workdir)
}

func (s *Script) words() []string {
	if s.Checks {
		return []string{"script", "the checks"}
	}
	return []string{"script", oneline.Clip(s.Command, maxText)}
}

func (s *Script) texts() (run []string, named map[string]string) {
	return []string{s.Command, s.Workdir}, s.Env
}

func (s *Script) secrets() []string { return append(secretsOfEnv(s.Env), s.Secrets()...) }

// Secrets returns the names of the secrets that the command uses, sorted.
func (s *Script) Secrets() []string {
	uses, err := tmpl.CheckCommand("", s.Command)
	if err != nil {
		return nil // reported when the grimoire was read
	}
	return secretsIn(uses.Data)
}

func (*Script) describe(s *schema.Schema) {
	s.AnyOf = []*schema.Schema{{Required: []string{"command"}}, {Required: []string{"checks"}}}
}
