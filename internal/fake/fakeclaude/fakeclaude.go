// Package fakeclaude is a fake of the Claude Code CLI, for tests and for
// the demo.
//
// It takes the flags that coven uses, speaks the same JSON lines on standard
// input and output, uses the same model API (in practice package fakeapi) and
// the same MCP permission tool, and really runs the tools Bash, Read, Write, Edit,
// NotebookEdit, Glob and Grep. The contract test of this package compares its behavior
// with the real CLI.
//
// A message that arrives during work is added after the next tool results, or after
// the result in a separate turn, together with other waiting messages. The real CLI
// also reports the position of a message in its queue; coven does not read that, and
// the fake does not print it.
//
// If the real CLI would ask, a tool call runs only after the permission tool
// allowed it, except with a fault. The conversation is on disk before a line about it
// is printed. It supports no slash commands, background commands, subagents, hooks,
// skills or memory, and it rejects unknown flags.
//
// Faults and the record of a run are in $HOME/.fake-claude, see Fault and
// Record, because coven does not pass the environment on. Without that directory there
// are no faults and no record.
package fakeclaude

import (
	"fmt"
	"os"
	"strings"
)

// Version is the imitated version of the real CLI.
const Version = "2.1.332"

// Main runs one process of the CLI with the arguments after the program's
// name, on the process's standard streams, and returns its exit code.
func Main(args []string) int {
	opts, err := parseOptions(args)
	if err != nil {
		return complain(err)
	}
	if opts.version {
		fmt.Println(Version + " (Claude Code)")
		return 0
	}
	if isTerminal(os.Stdin) {
		return complain(fmt.Errorf("Error: Input must be provided either through stdin or as a prompt argument when using --print"))
	}
	if info, err := os.Stdin.Stat(); err == nil && info.Mode().IsRegular() {
		return 0 // the real CLI does the same silently
	}
	run, err := newRun(args, opts)
	if err != nil {
		return complain(err)
	}
	defer run.close()
	return run.main()
}

func complain(err error) int {
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// isTerminal reports whether the file is a terminal.
func isTerminal(file *os.File) bool {
	name, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", file.Fd()))
	return err == nil && (strings.HasPrefix(name, "/dev/pts/") || strings.HasPrefix(name, "/dev/tty"))
}
