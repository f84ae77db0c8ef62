package tmpl

// Reference is a reference to a name in a template.
type Reference struct {
	Path         []string // for {{.steps.fix.output}}: steps, fix, output
	Line, Column int      // starting at 1
	// Tested reports whether the template tests the existence of the name: {{if .x}}, {{with .x}},
	// {{default "none" .x}}, {{.x | default "none"}}. In a prompt, such a name need not exist.
	Tested bool
}

// Uses lists the references of a template. They are determined without running it.
type Uses struct {
	Data     []Reference // keys of the data; inside with and range, only those that begin with $
	Includes []Include
	Raw      []Reference // calls of raw, which leave values unquoted; Path is empty
	Sole     *Reference  // set if the template prints only this path of the data
}

// Include is a call of include in a prompt.
type Include struct {
	Reference // Path has only the name
	Params    []Param
}

// Param is a parameter of an include.
type Param struct {
	Name         string
	Line, Column int      // of the name
	Value        []string // path of the data that provides the value; nil for other values
	Text         bool     // the value is a literal
}

// CheckText checks a template for Text or NewCondition.
func CheckText(name, text string) (Uses, error) { return check(name, text, plain) }

// CheckPrompt checks a template for Prompt, without included
// prompts.
func CheckPrompt(name, text string) (Uses, error) { return check(name, text, prompt) }

// CheckCommand checks a template for NewCommand. It also finds values in
// places where shell quoting does not work.
func CheckCommand(name, text string) (Uses, error) { return check(name, text, command) }

func check(name, text string, f form) (Uses, error) {
	p, err := compile(name, text, f)
	if err != nil {
		return Uses{}, err
	}
	return p.uses, nil
}
