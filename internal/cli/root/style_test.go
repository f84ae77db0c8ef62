package root

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// frequent lists the commands whose help has examples.
var frequent = []string{
	"run", "status", "review", "approve", "revise", "reject", "resume", "retry", "cancel", "attach", "why", "logs", "diff", "task add", "doctor",
}

// placeholders are the names of arguments in usage lines: one word per concept.
var placeholders = []string{"TASK", "COMMIT", "NAME", "FILE", "KEY", "VALUE", "TITLE", "SESSION", "KIND", "COMMAND", "TOPIC", "DIR", "RESCUE", "N", "PERMISSION", "SUBJECT", "AGENT", "TEXT", "PROMPT", "GLOB", "JSON"}

// The help of all commands has the same style.
func TestHelpStyle(t *testing.T) {
	root := NewRoot(NewApp("dev"))
	eachCommand(root, func(cmd *cobra.Command) {
		short := cmd.Short
		if first, _, _ := strings.Cut(short, " "); !regexp.MustCompile(`^[A-Z][a-z]+,?$`).MatchString(first) || strings.HasSuffix(short, ".") || len(short) > 72 {
			t.Errorf("%s: a summary begins with a verb, ends without a period and is short: %q", cmd.CommandPath(), short)
		}
		for _, word := range regexp.MustCompile(`\b[A-Z]+\b`).FindAllString(withoutFlags(cmd.Use), -1) {
			if !slices.Contains(placeholders, word) {
				t.Errorf("%s: unknown argument %s", cmd.CommandPath(), word)
			}
		}
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) { flagStyle(t, cmd, f) })
	})
	for _, name := range frequent {
		cmd, _, err := root.Find(strings.Fields(name))
		if err != nil || !strings.Contains(cmd.Example, "  coven "+name) {
			t.Errorf("coven %s has no example: %v", name, err)
		}
	}
}

// flagStyle checks the line of a flag.
func flagStyle(t *testing.T, cmd *cobra.Command, f *pflag.Flag) {
	t.Helper()
	name, usage := pflag.UnquoteUsage(f)
	switch {
	case name != strings.ToUpper(name):
		t.Errorf("%s --%s: name its value: `%s`", cmd.CommandPath(), f.Name, strings.ToUpper(name))
	case strings.HasSuffix(usage, "."), strings.ToLower(usage[:1]) != usage[:1] && !strings.HasPrefix(usage, name), len(usage) > 120:
		t.Errorf("%s --%s: a flag's text begins in lower case, ends without a period and is short: %q", cmd.CommandPath(), f.Name, usage)
	}
}

// withoutFlags returns a usage line up to its first flag.
func withoutFlags(use string) string {
	before, _, _ := strings.Cut(use, " -")
	return before
}
