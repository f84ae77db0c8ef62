package process

import "os"

// enforcement returns the abilities of sandbox-exec.
func enforcement(mode) Enforcement {
	_, err := os.Stat(sandboxExec)
	return Enforcement{Profile: err == nil}
}

// within returns the command line that runs a program in the limits. l may be nil.
func (l *limits) within(path string, argv []string) (string, []string) {
	if l == nil {
		return path, argv
	}
	return sandboxExec, l.profiled(path, argv)
}
