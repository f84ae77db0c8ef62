package root

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/coven-run/coven/internal/cli"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/text/didyoumean"
)

// unknownCommand returns an error if args name a command that does not exist. cobra does not report it if
// there is a --help.
func unknownCommand(root *cobra.Command, args []string) error {
	root.InitDefaultHelpCmd()
	cmd, rest, _ := root.Find(args) // cobra reports the error
	if !cmd.HasSubCommands() {
		return nil
	}
	for _, word := range rest {
		switch {
		case strings.HasPrefix(word, cobra.ShellCompRequestCmd):
			return nil
		case !strings.HasPrefix(word, "-") || word == "-":
			err := cli.NoCommand(cmd, []string{word})
			if meant := meant[word]; meant != "" && cmd == root {
				return exit.Usagef(meant, "%w", err)
			}
			return usage(cmd, err)
		case !isFlag(cmd, word):
			return nil // cobra reports it
		}
	}
	return nil
}

// meant names the command for words that people know from other tools.
var meant = map[string]string{
	"ls": "coven status", "list": "coven status", "ps": "coven status", "tasks": "coven task list",
	"new": `coven run -p "..."`, "start": "coven run TASK", "add": `coven task add "..."`, "create": `coven task add "..."`,
	"show": "coven review TASK", "view": "coven review TASK", "log": "coven logs TASK",
	"land": "coven approve TASK", "merge": "coven approve TASK", "accept": "coven approve TASK", "apply": "coven approve TASK",
	"continue": "coven resume TASK", "stop": "coven cancel TASK", "kill": "coven cancel TASK", "rm": "coven cancel TASK",
	"undo": "coven revert TASK", "clean": "coven gc", "cleanup": "coven gc", "prune": "coven gc",
}

// isFlag reports whether a word such as --help or -h is a flag of a command.
func isFlag(cmd *cobra.Command, word string) bool {
	if name, long := strings.CutPrefix(word, "--"); long {
		return cmd.Flags().Lookup(name) != nil
	}
	return cmd.Flags().ShorthandLookup(word[1:]) != nil
}

// usage returns a usage error of a command.
func usage(cmd *cobra.Command, err error) error {
	return exit.Usagef(cmd.CommandPath()+" --help", "%w", err)
}

// checkUsage makes a command and its subcommands refuse empty arguments and values of
// flags, and reports errors about arguments as usage errors.
func checkUsage(cmd *cobra.Command) {
	cmd.InitDefaultHelpFlag() // otherwise cobra takes a command after --help for its value
	check := cmd.Args
	if check == nil {
		check = cobra.ArbitraryArgs
	}
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		err := emptyFlag(cmd)
		if err == nil {
			err = argumentError(cmd, args, check(cmd, args))
		}
		if err != nil {
			return usage(cmd, err)
		}
		return nil
	}
	for _, sub := range cmd.Commands() {
		checkUsage(sub)
	}
}

// emptyFlag returns an error if a flag was given an empty text.
func emptyFlag(cmd *cobra.Command) error {
	var found error
	cmd.Flags().Visit(func(f *pflag.Flag) {
		texts := []string{f.Value.String()}
		switch list, isList := f.Value.(pflag.SliceValue); {
		case isList:
			texts = list.GetSlice()
		case f.Value.Type() != "string":
			return
		}
		if found == nil && !cli.MayBeEmpty(f) && slices.ContainsFunc(texts, blank) {
			found = fmt.Errorf("--%s is empty (is a variable unset?)", f.Name)
		}
	})
	return found
}

func blank(text string) bool { return strings.TrimSpace(text) == "" }

// argumentError explains an error in the arguments of a command. err is the error of cobra.
func argumentError(cmd *cobra.Command, args []string, err error) error {
	required, all := parameters(cmd)
	known := cmd.ValidArgs
	switch {
	case cmd.HasSubCommands():
		return err
	case slices.ContainsFunc(args, blank):
		at := slices.IndexFunc(args, blank)
		return fmt.Errorf("%s is empty (is a variable unset?)", parameter(all, at))
	case err == nil:
		return nil
	case len(args) < len(required):
		_, arguments, _ := strings.Cut(cmd.Use, " ")
		return fmt.Errorf("missing %s: %s %s", required[len(args)], cmd.CommandPath(), arguments)
	case len(args) > len(all) && len(all) == 0:
		return fmt.Errorf("unexpected argument %q: %s takes none", args[0], cmd.CommandPath())
	case len(args) > len(all):
		return fmt.Errorf("unexpected argument %q: %s takes one %s%s", args[len(all)], cmd.CommandPath(), parameter(all, len(all)-1), quoted(all))
	case len(known) > 0:
		return fmt.Errorf("%q is not one of %s%s", args[0], strings.Join(known, ", "), suggestion(args[0], known))
	}
	return err
}

// quoted returns the advice to quote the argument, for a command that takes a title.
func quoted(all []string) string {
	if slices.Contains(all, "TITLE") {
		return "; put quotes around it"
	}
	return ""
}

// parameters returns the names of the arguments in the usage line of a command.
func parameters(cmd *cobra.Command) (required, all []string) {
	for _, word := range strings.Fields(cmd.Use)[1:] {
		name := strings.Trim(word, "[].")
		if strings.HasPrefix(name, "-") {
			break
		}
		all = append(all, name)
		if !strings.HasPrefix(word, "[") {
			required = append(required, name)
		}
	}
	return required, all
}

// parameter returns the name of the argument at a position.
func parameter(all []string, at int) string {
	if len(all) == 0 {
		return "the argument"
	}
	return all[min(at, len(all)-1)]
}

// flagError explains an error of cobra about a flag.
func flagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	var missing *pflag.ValueRequiredError
	var invalid *pflag.InvalidValueError
	var syntax *pflag.InvalidSyntaxError
	switch {
	case errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() != "":
		err = fmt.Errorf("unknown flag -%.1s", unknown.GetSpecifiedName())
	case errors.As(err, &unknown):
		name := "--" + unknown.GetSpecifiedName()
		err = fmt.Errorf("unknown flag %s%s", name, suggestion(name, flagNames(cmd)))
	case errors.As(err, &missing):
		name, _ := pflag.UnquoteUsage(missing.GetFlag())
		err = fmt.Errorf("missing value: --%s %s", missing.GetFlag().Name, strings.ToUpper(name))
	case errors.As(err, &invalid) && errors.Is(err, cli.ErrTwice):
		err = fmt.Errorf("--%s is given twice", invalid.GetFlag().Name)
	case errors.As(err, &invalid):
		err = fmt.Errorf("--%s: %s", invalid.GetFlag().Name, wrongValue(invalid))
	case errors.As(err, &syntax):
		err = fmt.Errorf("%q is not a flag", syntax.GetSpecifiedFlag())
	}
	return usage(cmd, err)
}

// wrongValue describes a value that is not of the flag's type.
func wrongValue(e *pflag.InvalidValueError) string {
	kinds := map[string]string{"int": "a whole number", "int64": "a whole number", "bool": "true or false", "duration": "a duration such as 90s or 5m"}
	kind, known := kinds[e.GetFlag().Value.Type()]
	switch {
	case errors.Is(e, strconv.ErrRange):
		return e.GetValue() + " is too large"
	case known:
		return fmt.Sprintf("%q is not %s", e.GetValue(), kind)
	}
	return fmt.Sprintf("%q: %v", e.GetValue(), e.Unwrap())
}

// flagNames returns the flags of a command.
func flagNames(cmd *cobra.Command) []string {
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, "--"+f.Name)
		}
	})
	return names
}

// suggestion returns a suggestion to append to an error, or "": the only known word with this prefix, or
// else the most similar one.
func suggestion(word string, known []string) string {
	other := func(k string) bool { return !strings.HasPrefix(k, word) }
	if begin := slices.DeleteFunc(slices.Clone(known), other); len(begin) == 1 {
		return " (did you mean " + begin[0] + "?)"
	}
	if near, ok := didyoumean.Nearest(word, known); ok {
		return " (did you mean " + near + "?)"
	}
	return ""
}
