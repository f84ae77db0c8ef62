package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/coven-run/coven/internal/cli"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/text/shellword"
)

// walked names the environment variable with the file to which the coven of a story appends the faults of the commands that
// it recommends.
const walked = "COVEN_WALKED"

// TestWalk plays the README and the first examples of all guides. Each coven in them follows every command that it
// recommends, in a copy of the story's directory: the command must work, must change something unless it only shows
// something, and must not recommend itself.
func TestWalk(t *testing.T) {
	longRun(t)
	file := filepath.Join(t.TempDir(), "walked")
	testscript.Run(t, testscript.Params{
		Files: walks(t), Cmds: scriptCommands(), RequireExplicitExec: true, RequireUniqueNames: true, Condition: condition,
		Setup: func(env *testscript.Env) error {
			env.Setenv(walked, file)
			return seal(env)
		},
	})
	if faults, err := os.ReadFile(file); err == nil {
		t.Errorf("%s", faults)
	}
}

// walks returns the stories of the README and the guides. Each guide with commands must have one. Those of sandbox.md follow
// an attack on the repository, which the story tripwire plays, and the screen and the page last until a person ends them, as in
// the stories ui and web.
func walks(t *testing.T) []string {
	t.Helper()
	files, played := []string{filepath.Join("testdata", "script", "readme.txtar")}, ""
	for _, file := range stories(t, "script", "long") {
		if strings.Contains(filepath.Base(file), "guide") {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			files, played = append(files, file), played+string(text)
		}
	}
	guides, err := filepath.Glob(filepath.Join("..", "..", "docs", "guides", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, guide := range guides {
		text, err := os.ReadFile(guide)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Base(guide)
		hasCommands := strings.Contains(string(text), "```sh\n") || strings.Contains(string(text), "```bash\n")
		if hasCommands && !slices.Contains([]string{"sandbox.md", "page.md"}, name) && !strings.Contains(played, "guide "+name) && !strings.Contains(played, "first "+name) {
			t.Errorf("no story plays %s", name)
		}
	}
	return files
}

// followAdvice returns a function that follows the commands that coven recommends in its output.
func followAdvice(app *cli.App) func() {
	file := os.Getenv(walked)
	if file == "" || app.Terminal {
		return func() {}
	}
	said := &bytes.Buffer{}
	app.Out, app.Err = io.MultiWriter(app.Out, said), io.MultiWriter(app.Err, said)
	return func() {
		for _, next := range nexts(said.Bytes()) {
			fault, err := aside(next)
			if err != nil {
				fault = err.Error()
			}
			if fault != "" {
				_ = appendLine(file, fault+"\n\n")
			}
		}
	}
}

// aside follows a command, and then restores the directory of the story, with tar, which keeps the directories in which
// shells work.
func aside(next string) (fault string, err error) {
	dir := os.Getenv("WORK")
	f := follower{env: append(os.Environ(), walked+"=")}
	if f.repo, err = os.Getwd(); err != nil {
		return "", err
	}
	saved, err := os.CreateTemp("", "aside")
	if err != nil {
		return "", err
	}
	defer os.Remove(saved.Name()) //nolint:errcheck // a temporary file
	if out, err := exec.Command("tar", "-C", dir, "-cGf", saved.Name(), ".").CombinedOutput(); err != nil {
		return "", fmt.Errorf("save %s: %w: %s", dir, err, out)
	}
	var said []string
	for _, arg := range os.Args[1:] {
		said = append(said, shellword.Word(arg))
	}
	fault = f.walk("coven "+strings.Join(said, " "), next)
	if out, err := exec.Command("tar", "-C", dir, "-xGf", saved.Name()).CombinedOutput(); err != nil {
		return "", fmt.Errorf("restore %s: %w: %s", dir, err, out)
	}
	return fault, nil
}

// acting lists the beginnings of the commands that must change something.
var acting = append([]string{"coven approve ", "coven revise ", "coven reject ", "coven cancel ", "coven config set ", "coven trust ", "coven task edit "}, followed...)

// a placeholder is a word that a person replaces.
var placeholder = regexp.MustCompile(`\b[A-Z]{2,}\b`)

// walk follows a command that another one recommends, and those that it recommends in turn. It returns a fault, or "".
func (f follower) walk(said, next string) string {
	path := said
	for range 5 {
		path += "\n  next: " + next
		if next == said {
			return path + "\nis the same command again"
		}
		if placeholder.MatchString(next) || !begins(next, []string{"coven ", "git "}) {
			return "" // for a person
		}
		out, changed, err := f.try(next)
		var status *exec.ExitError
		waits := errors.As(err, &status) && status.ExitCode() == exit.Person
		switch {
		case err != nil && !waits:
			return fmt.Sprintf("%s\ndoes not work: %v\n%s", path, err, out)
		case !changed && begins(next, acting):
			return fmt.Sprintf("%s\nchanges nothing:\n%s", path, out)
		}
		if said, next = next, nextIn(out); next == "" {
			return ""
		}
	}
	return ""
}
