package grimoires

// Given is the result of a step that does not run, because an earlier session has run it. Later steps read it like the result of a step that has run.
type Given struct {
	Ran      bool     `yaml:"ran"` // false for a skipped step
	OK       bool     `yaml:"ok,omitempty"`
	Output   string   `yaml:"output,omitempty"`
	Outputs  string   `yaml:"outputs,omitempty"` // a JSON object
	Summary  string   `yaml:"summary,omitempty"`
	Error    string   `yaml:"error,omitempty"`
	ExitCode int      `yaml:"exit_code,omitempty"`
	Commit   string   `yaml:"commit,omitempty"`
	Files    []string `yaml:"files,omitempty"`
	Agent    string   `yaml:"agent,omitempty"` // empty if no agent ran
}
