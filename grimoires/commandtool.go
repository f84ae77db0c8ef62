package grimoires

import "time"

// CommandTool is the part of a plan that describes a project tool which runs a command. See package
// command.
type CommandTool struct {
	Source      string        `yaml:"source"` // its file
	Description string        `yaml:"description"`
	Category    string        `yaml:"category"`
	Parameters  string        `yaml:"parameters"` // a JSON Schema, as JSON
	Argv        []string      `yaml:"argv"`       // templates, each of which results in one or more arguments
	Timeout     time.Duration `yaml:"timeout"`
}
