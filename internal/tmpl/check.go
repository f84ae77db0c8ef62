package tmpl

// Reference is a place in a template that names something.
type Reference struct {
	Path         []string // {{.steps.fix.output}}: steps, fix, output
	Line, Column int      // from 1
	// Tested reports whether the template asks if it exists: {{if .x}}, {{with .x}},
	// {{default "none" .x}}. A prompt may then name what is not there.
	Tested bool
}

// Uses is what a template is seen to use without being run.
type Uses struct {
	Data     []Reference // keys of the data; those inside with and range only when they begin with $
	Includes []Include
	Raw      []Reference // values that raw leaves unquoted; Path is empty
	Sole     *Reference  // what the template prints, when it is one path of the data and nothing else
}

// Include is a place where a prompt includes another.
type Include struct {
	Reference // Path holds the one name
	Params    []Param
}

// Param is a name that an included prompt is given.
type Param struct {
	Name         string
	Line, Column int      // of the name
	Value        []string // a path of the data, of which the parameter is the value; nil: something else
	Text         bool     // the value is a text, a number, true or false
}

// CheckText finds what is wrong in a template for Text or NewCondition.
func CheckText(name, text string) (Uses, error) { return check(name, text, plain) }

// CheckPrompt finds what is wrong in a template for Prompt. It does not look
// into what the template includes.
func CheckPrompt(name, text string) (Uses, error) { return check(name, text, prompt) }

// CheckCommand finds what is wrong in a template for NewCommand: values in places
// where quoting them for the shell cannot work, too.
func CheckCommand(name, text string) (Uses, error) { return check(name, text, command) }

func check(name, text string, f form) (Uses, error) {
	p, err := compile(name, text, f)
	if err != nil {
		return Uses{}, err
	}
	return p.uses, nil
}
