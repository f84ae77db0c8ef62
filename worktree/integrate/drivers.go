package integrate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coven-run/coven/internal/text/shellword"
	"github.com/coven-run/coven/worktree/internal/file"
	"github.com/coven-run/coven/worktree/internal/git"
	"github.com/coven-run/coven/worktree/internal/repo"
)

const driverKeys = `^merge\..*\.driver$`

// mergeTree runs git merge-tree with the options. The result is that of git, but the merge drivers of the configuration
// run in the worktree's sandbox, because they work on the agent's content: git gets a driver that answers with known
// results. Of a file without one, it stores the versions, and the real driver runs before the next attempt.
func mergeTree(ctx context.Context, w *repo.Worktree, g git.Repo, options ...string) ([]string, error) {
	args := slices.Concat([]string{"merge-tree", "--write-tree", "-z"}, options)
	configured, err := g.Configured(ctx, driverKeys, false)
	if err != nil {
		return nil, fmt.Errorf("find the merge drivers: %w", err)
	}
	commands := map[string]string{} // by name
	for _, s := range configured {
		commands[strings.TrimSuffix(strings.TrimPrefix(s.Key, "merge."), ".driver")] = s.Value
	}
	if len(commands) == 0 {
		return g.Fields(ctx, args...)
	}
	d := drivers{w: w, commands: commands, dir: w.StatePath("merge-drivers")}
	if w.RunDriver != nil {
		if err := d.prepare(); err != nil {
			return nil, fmt.Errorf("prepare the merge drivers: %w", err)
		}
		defer func() { _ = os.RemoveAll(d.dir) }() // the next merge removes it
	}
	g.Settings = append(slices.Clone(g.Settings), d.settings()...)
	for {
		fields, err := g.Fields(ctx, args...)
		ran, runErr := d.runPending(ctx)
		if runErr != nil {
			return nil, runErr
		}
		if !ran {
			return fields, err
		}
	}
}

// drivers are the merge drivers of one merge.
type drivers struct {
	w        *repo.Worktree
	commands map[string]string
	// dir contains the script in place of the drivers, and a directory for each file that a driver merges. The sandbox can
	// write only the directory work.
	dir string
}

// driverScript is run as NAME %O %A %B %L %P %S %X %Y. The directory of a file is named after all of them.
const driverScript = `name=$1 base=$2 ours=$3 theirs=$4
shift 4
key=$(git hash-object --no-filters -- "$base" "$ours" "$theirs") || exit 129
key=$(printf '%s\n' "$name" "$key" "$@" | git hash-object --stdin) || exit 129
at=${0%/*}/$key
if test -f "$at/code"; then
	cp "$at/result" "$ours" && exit "$(cat "$at/code")"
	exit 129
fi
mkdir -p "$at" && cp "$base" "$at/base" && cp "$ours" "$at/ours" && cp "$theirs" "$at/theirs" || exit 129
printf '%s\0' "$name" "$@" >"$at/arguments.new" && mv "$at/arguments.new" "$at/arguments"
exit 1
`

// prepare writes the script into an empty directory.
func (d *drivers) prepare() error {
	if err := file.RemoveAll(d.dir); err != nil {
		return err
	}
	if err := os.MkdirAll(d.dir, 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(d.dir, "driver"), []byte(driverScript), 0o600)
}

// settings replaces the commands of all drivers. Without a sandbox, the files that they would merge are in conflict.
func (d *drivers) settings() []git.Setting {
	var settings []git.Setting
	for name := range d.commands {
		command := "exit 1"
		if d.w.RunDriver != nil {
			words := "sh " + shellword.Quote(filepath.Join(d.dir, "driver")) + " " + shellword.Quote(name)
			command = strings.ReplaceAll(words, "%", "%%") + " %O %A %B %L %P %S %X %Y"
		}
		settings = append(settings, git.Setting{Key: "merge." + name + ".driver", Value: command})
	}
	return settings
}

// runPending runs the drivers of the files without a result, and reports whether there was one.
func (d *drivers) runPending(ctx context.Context) (ran bool, err error) {
	if d.w.RunDriver == nil {
		return false, nil
	}
	entries, err := os.ReadDir(d.dir)
	for _, e := range entries {
		at := filepath.Join(d.dir, e.Name())
		if !file.Exists(filepath.Join(at, "arguments")) || file.Exists(filepath.Join(at, "code")) {
			continue
		}
		ran = true
		if err := d.run(ctx, at); err != nil {
			return ran, fmt.Errorf("run a merge driver: %w", err)
		}
	}
	return ran, err
}

// run runs the driver of a file, and stores its result.
func (d *drivers) run(ctx context.Context, at string) error {
	raw, err := file.Read(filepath.Join(at, "arguments"), maxArguments)
	if err != nil {
		return err
	}
	arguments := git.Split(raw)
	if len(arguments) < 3 {
		return errors.New("git gave no path")
	}
	work := filepath.Join(d.dir, "work")
	if err := errors.Join(file.RemoveAll(work), os.Mkdir(work, 0o700)); err != nil {
		return err
	}
	for _, version := range []string{"base", "ours", "theirs"} {
		if err := file.CopyRegular(filepath.Join(work, version), filepath.Join(at, version)); err != nil {
			return err
		}
	}
	merged, err := d.w.RunDriver(ctx, expanded(d.commands[arguments[0]], work, arguments[1:]), work)
	if err != nil {
		return err
	}
	result, code := filepath.Join(work, "ours"), "0"
	if !merged {
		code = "1"
	}
	if info, err := os.Lstat(result); err != nil || !info.Mode().IsRegular() { // the driver removed or replaced it
		result, code = filepath.Join(at, "ours"), "1"
	}
	if err := file.CopyRegular(filepath.Join(at, "result"), result); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(at, "code"), []byte(code), 0o600)
}

// maxArguments limits the arguments of a driver, in bytes.
const maxArguments = 1 << 20

// expanded returns the command of a driver with the placeholders replaced as by git. arguments are %L, %P, %S, %X and %Y;
// an older git leaves the last three as they are.
func expanded(command, work string, arguments []string) string {
	replaced := []string{"%%", "%", "%L", arguments[0], "%P", shellword.Quote(arguments[1])}
	for placeholder, version := range map[string]string{"%O": "base", "%A": "ours", "%B": "theirs"} {
		replaced = append(replaced, placeholder, shellword.Quote(filepath.Join(work, version)))
	}
	for i, placeholder := range []string{"%S", "%X", "%Y"} {
		if i+2 < len(arguments) && arguments[i+2] != placeholder {
			replaced = append(replaced, placeholder, shellword.Quote(arguments[i+2]))
		}
	}
	return strings.NewReplacer(replaced...).Replace(command)
}
