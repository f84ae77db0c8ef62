package tmpl

// Reference is a place in a template that names something.
type Reference struct {
	Path         []string // {{.steps.fix.output}}: steps, fix, output
	Line, Column int      // from 1
}

// Uses is what a template is seen to use without being run.
type Uses struct {
	Data     []Reference // keys of the data; those inside with and range only when they begin with $
	Includes []Reference // Path holds the one name
	Raw      []Reference // values that raw leaves unquoted; Path is empty
}

// CheckText finds what is wrong in a template for Text or Bool.
func CheckText(name, text string) (Uses, error) { return check(name, text, plain) }

// CheckPrompt finds what is wrong in a template for Prompt. It does not look
// into what the template includes.
func CheckPrompt(name, text string) (Uses, error) { return check(name, text, prompt) }

// CheckCommand finds what is wrong in a template for Command: values in places
// where quoting them for the shell cannot work, too.
func CheckCommand(name, text string) (Uses, error) { return check(name, text, command) }

func check(name, text string, f form) (Uses, error) {
	p, err := compile(name, text, f)
	if err != nil {
		return Uses{}, err
	}
	return p.uses, nil
}
