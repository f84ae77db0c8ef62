package cli

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/coven-run/coven/internal/control"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/session"
)

// RemoveFlags adds the flags of commands that remove a worktree with ignored files.
func RemoveFlags(cmd *cobra.Command, ignored *control.IgnoredFiles) {
	cmd.Flags().BoolVar(&ignored.Store, "keep-big", false, "store ignored files of any size")
	cmd.Flags().BoolVar(&ignored.Drop, "drop-ignored", false, "delete ignored files that are too large to store")
}

// UnsandboxedFlag adds the flag that accepts a machine without a sandbox.
func UnsandboxedFlag(cmd *cobra.Command, accepted *bool) {
	cmd.Flags().BoolVar(accepted, "unsandboxed", false, "run although this machine has no sandbox; remembered for the repository")
}

// emptyAllowed is the annotation of flags whose value may be empty.
const emptyAllowed = "coven_empty_allowed"

// AllowEmpty lets a flag of a command have an empty value. All other flags refuse it,
// because it usually is a shell variable that is not set.
func AllowEmpty(cmd *cobra.Command, name string) {
	if err := cmd.Flags().SetAnnotation(name, emptyAllowed, []string{"true"}); err != nil {
		panic(fmt.Errorf("flag --%s of %s: %w", name, cmd.CommandPath(), err))
	}
}

// MayBeEmpty reports whether the value of a flag may be empty.
func MayBeEmpty(f *pflag.Flag) bool { return f.Annotations[emptyAllowed] != nil }

// ErrTwice reports that a flag of Once is given twice.
var ErrTwice = errors.New("it is given twice")

// Once makes a command refuse flags that are given twice. By default the last value counts and the first is
// lost.
func Once(cmd *cobra.Command, names ...string) {
	for _, name := range names {
		f := cmd.Flags().Lookup(name)
		f.Value = &once{Value: f.Value}
	}
}

// once is a flag value that can be set once.
type once struct {
	pflag.Value
	set bool
}

// Set implements pflag.Value.
func (o *once) Set(text string) error {
	if o.set {
		return ErrTwice
	}
	o.set = true
	return o.Value.Set(text)
}

// Age parses an age: a number of hours, days or weeks, such as 12h, 30d or 2w.
func Age(text string) (age time.Duration, ok bool) {
	for unit, length := range map[string]time.Duration{"h": time.Hour, "d": 24 * time.Hour, "w": 7 * 24 * time.Hour} {
		number, found := strings.CutSuffix(text, unit)
		if n, err := strconv.ParseUint(number, 10, 16); found && err == nil {
			return time.Duration(n) * length, true
		}
	}
	return 0, false
}

// Since returns the time that the value of --since names, or the zero time if it is empty.
func (a *App) Since(text, example string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	age, ok := Age(text)
	if !ok {
		return time.Time{}, exit.Usagef(example, "--since %q is no age: 12h, 7d or 2w", text)
	}
	return a.Now().Add(-age), nil
}

// DamagedJSON is an unreadable session in JSON output.
type DamagedJSON struct {
	Session string `json:"session_id"`
	Reason  string `json:"reason"`
}

// ReportDamaged prints the damaged sessions in an error as warnings, and returns them for JSON and the remaining error.
func (a *App) ReportDamaged(broken error) ([]DamagedJSON, error) {
	damaged, err := session.DamagedIn(broken)
	all := []DamagedJSON{} // not nil, for JSON
	for _, d := range damaged {
		all = append(all, DamagedJSON{d.Session, d.Err.Error()})
		a.PrintDamaged([]session.View{d.View()})
	}
	return all, err
}
