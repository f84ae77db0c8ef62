package root

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/coven-run/coven/internal/cli"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/session"
)

// Every command resolves the names of tasks in the same way: a prefix of two IDs is refused with both IDs,
// which a command that compares IDs itself would not do.
func TestEveryCommandTakesThePrefixOfATask(t *testing.T) {
	dir := withTasks(t, "same-one", "same-two")
	commands := 0
	for _, args := range takingTasks(NewRoot(appIn(dir)), nil) {
		commands++
		name := strings.Join(args, " ")
		a := appIn(dir)
		cmd := NewRoot(a)
		cmd.SetArgs(args)
		err := cmd.ExecuteContext(t.Context())
		ambiguous := (*project.AmbiguousError)(nil)
		if !errors.As(err, &ambiguous) || !slices.Equal(ambiguous.IDs, []string{"same-one", "same-two"}) || exit.Code(err) != exit.Usage {
			t.Errorf("coven %s: %v (exit code %d)\n%s", name, err, exit.Code(err), a.Out)
		}
	}
	t.Logf("%d command lines", commands)
	if commands < 18 {
		t.Errorf("only %d commands take a task", commands)
	}
}

// required are the flags that a command needs before it looks for its task.
var required = map[string][]string{"reject": {"--reason", "x"}, "revise": {"-m", "x"}, "modify": {"--input", "{}"}}

// takingTasks returns a command line with the name "same-" for each argument and flag of the commands below
// cmd that is a task.
func takingTasks(cmd *cobra.Command, path []string) [][]string {
	var lines [][]string
	words := strings.Fields(cmd.Use)
	for _, word := range words[1:] {
		if strings.HasPrefix(word, "-") {
			break // flags are handled below
		}
		if word = strings.Trim(word, "[]."); word == "TASK" || word == "ID" || word == "SESSION|TASK" {
			line := slices.Concat(path, required[cmd.Name()], []string{"same-"})
			if slices.Contains(words, "N") {
				line = append(line, "1")
			}
			lines = append(lines, line)
			break
		}
	}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Name == "task" || f.Name == "after" {
			lines = append(lines, slices.Concat(path, []string{"--" + f.Name, "same-", "implement"}))
		}
	})
	for _, sub := range cmd.Commands() {
		lines = append(lines, takingTasks(sub, slices.Concat(path, []string{sub.Name()}))...)
	}
	return lines
}

// withTasks enters a repository whose tracker has these tasks, each with a session.
func withTasks(t *testing.T, tasks ...string) string {
	t.Helper()
	repository(t)
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	var lines bytes.Buffer
	for _, id := range tasks {
		lines.WriteString(`{"id":"` + id + `","title":"x","status":"open","issue_type":"task","priority":2,"created_at":"2026-01-01T00:00:00Z"}` + "\n")
		s, err := session.Create(dir, id, "x", project.NewEnv("test").Now)
		if err != nil {
			t.Fatal(err)
		}
		err = errors.Join(s.Append(event.Event{Type: event.SessionStarted}, event.Session{Query: "x"}), s.Close())
		if err != nil {
			t.Fatal(err)
		}
	}
	beads := filepath.Join(dir, ".beads")
	if err := errors.Join(os.Mkdir(beads, 0o755), os.WriteFile(filepath.Join(beads, "issues.jsonl"), lines.Bytes(), 0o644)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// appIn returns coven as started in dir, with its output captured.
func appIn(dir string) *cli.App {
	env := project.NewEnv("test")
	env.Workdir = func() (string, error) { return dir, nil }
	return &cli.App{
		Environment: env, In: strings.NewReader(""), Out: &bytes.Buffer{}, Err: &bytes.Buffer{},
		Size: func() (int, int) { return 80, 24 },
	}
}
