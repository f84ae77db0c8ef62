package grimoires

import "time"

// CommandTool is what a plan has of a tool of the project that runs a command: see package command.
type CommandTool struct {
	Source      string        `yaml:"source"` // its file
	Description string        `yaml:"description"`
	Category    string        `yaml:"category"`
	Parameters  string        `yaml:"parameters"` // a JSON Schema, as JSON
	Argv        []string      `yaml:"argv"`       // templates, each of which becomes one argument or several
	Timeout     time.Duration `yaml:"timeout"`
}
