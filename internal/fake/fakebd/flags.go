package fakebd

import (
	"fmt"
	"slices"
	"strings"
)

// flags are the parsed arguments of a command.
type flags struct {
	set  map[string]string
	args []string
}

func (f flags) value(name string) string { return f.set[name] }

func (f flags) has(name string) bool {
	_, ok := f.set[name]
	return ok
}

// globals are the flags of every command.
var (
	globalValues = []string{"actor", "directory C", "db"}
	globalBools  = []string{"json", "quiet q", "readonly", "sandbox", "verbose v"}
)

// lists are the flags whose values add up. Each value is a list with commas.
var lists = []string{"add-label", "remove-label"}

// parse finds the command in the arguments and parses its flags.
func (r *run) parse(args []string) (string, command, error) {
	all := commands()
	name, at := commandName(args)
	cmd, ok := all[name]
	if !ok {
		return "", cmd, fmt.Errorf("unknown command %q for \"bd\"", name)
	}
	rest := slices.Delete(slices.Clone(args), at, at+len(strings.Fields(name)))
	r.flags = flags{set: map[string]string{}}
	values, bools := slices.Concat(globalValues, cmd.values), slices.Concat(globalBools, cmd.bools)
	for len(rest) > 0 {
		arg := rest[0]
		rest = rest[1:]
		if arg == "--" {
			r.flags.args = append(r.flags.args, rest...)
			break
		}
		if len(arg) < 2 || arg[0] != '-' {
			r.flags.args = append(r.flags.args, arg)
			continue
		}
		var err error
		if rest, err = r.flags.take(arg, rest, values, bools); err != nil {
			return name, cmd, err
		}
	}
	return name, cmd, nil
}

// commandName returns the first word that is not a flag, plus the next word for "dep".
func commandName(args []string) (string, int) {
	for i := 0; i < len(args); i++ {
		switch {
		case args[i] == "--actor" || args[i] == "-C" || args[i] == "--db":
			i++
		case strings.HasPrefix(args[i], "-"):
		case args[i] == "dep" && i+1 < len(args):
			return "dep " + args[i+1], i
		default:
			return args[i], i
		}
	}
	return "", 0
}

// take parses one flag, and takes its value from rest if it needs one.
func (f flags) take(arg string, rest, values, bools []string) ([]string, error) {
	word, value, given := strings.Cut(strings.TrimLeft(arg, "-"), "=")
	long := strings.HasPrefix(arg, "--")
	if !long && len(word) > 1 {
		word, value, given = word[:1], arg[2:], true
	}
	if name := match(values, word, long); name != "" {
		if !given {
			if len(rest) == 0 {
				return nil, fmt.Errorf("flag needs an argument: %s", arg)
			}
			value, rest = rest[0], rest[1:]
		}
		if !long {
			value = strings.TrimPrefix(value, "=")
		}
		if given, ok := f.set[name]; ok && slices.Contains(lists, name) {
			value = given + "," + value
		}
		f.set[name] = value
		return rest, nil
	}
	if name := match(bools, word, long); name != "" {
		f.set[name] = "true"
		return rest, nil
	}
	if long {
		return nil, fmt.Errorf("unknown flag: --%s", word)
	}
	return nil, fmt.Errorf("unknown shorthand flag: %q in %s", word, arg)
}

// match returns the name of the flag with a long or short name.
func match(known []string, word string, long bool) string {
	for _, one := range known {
		name, letter, _ := strings.Cut(one, " ")
		if long && name == word || !long && letter == word {
			return name
		}
	}
	return ""
}

// usage rejects a command line.
func (r *run) usage(name string, err error) int {
	r.warn("Error: %v\n", err)
	if name == "" {
		r.warn("Run 'bd --help' for usage.\n")
	} else {
		r.warn("Usage:\n  bd %s [flags]\n", name)
	}
	return 1
}
