package tmpl

// Reference is a place in a template that names something.
type Reference struct {
	Path         []string // {{.steps.fix.output}}: steps, fix, output
	Line, Column int      // from 1
	// Tested reports whether the template tests if it exists: {{if .x}}, {{with .x}},
	// {{default "none" .x}}. A prompt may then name what is not there.
	Tested bool
}

// Uses lists what a template uses, found without running it.
type Uses struct {
	Data     []Reference // keys of the data; those inside with and range only when they begin with $
	Includes []Include
	Raw      []Reference // values that raw leaves unquoted; Path is empty
	Sole     *Reference  // what the template prints, when it is one path of the data and nothing else
}

// Include is a call of include in a prompt.
type Include struct {
	Reference // Path holds the one name
	Params    []Param
}

// Param is a parameter of an include.
type Param struct {
	Name         string
	Line, Column int      // of the name
	Value        []string // the path of the data that gives the value; nil: something else
	Text         bool     // the value is a text, a number, true or false
}

// CheckText finds the errors in a template for Text or NewCondition.
func CheckText(name, text string) (Uses, error) { return check(name, text, plain) }

// CheckPrompt finds the errors in a template for Prompt. It does not check included
// prompts.
func CheckPrompt(name, text string) (Uses, error) { return check(name, text, prompt) }

// CheckCommand finds the errors in a template for NewCommand, including values in
// places where shell quoting does not work.
func CheckCommand(name, text string) (Uses, error) { return check(name, text, command) }

func check(name, text string, f form) (Uses, error) {
	p, err := compile(name, text, f)
	if err != nil {
		return Uses{}, err
	}
	return p.uses, nil
}
