package process

import "os"

// enforcement returns what sandbox-exec can enforce.
func enforcement(mode) Enforcement {
	_, err := os.Stat(sandboxExec)
	return Enforcement{Profile: err == nil}
}

// within returns the command line that runs a program in the limits; nil: without limits.
func (l *limits) within(path string, argv []string) (string, []string) {
	if l == nil {
		return path, argv
	}
	return sandboxExec, l.profiled(path, argv)
}
