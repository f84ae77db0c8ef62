package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/cli/root"
	"github.com/coven-run/coven/internal/config"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/manual"
	"github.com/coven-run/coven/internal/pluginregistry"
	"github.com/coven-run/coven/internal/session"
)

// TestDocs checks the documents against the program: every command in a shell block exists with its flags,
// every make target exists, and every link has a target.
func TestDocs(t *testing.T) {
	root := filepath.Join("..", "..")
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(root, "docs", "*", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	more, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	commands := 0
	for _, file := range append(append(files, more...), filepath.Join(root, "README.md"), filepath.Join(root, "CONTRIBUTING.md")) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		links(t, file, string(text))
		for _, line := range shellLines(string(text)) {
			commands++
			words := strings.Fields(line)
			switch words[0] {
			case "make":
				if !strings.Contains(string(makefile), "\n"+words[1]+":") {
					t.Errorf("%s: %q: no such target", file, line)
				}
			case "coven":
				parses(t, file, line)
			case "go":
				installs(t, file, line)
			default:
				t.Errorf("%s: %q is neither coven, go nor make", file, line)
			}
		}
	}
	if commands == 0 {
		t.Error("no commands found in the documents")
	}
}

// installs checks that a go install line names a program of this module.
func installs(t *testing.T, file, line string) {
	t.Helper()
	root := filepath.Join("..", "..")
	text, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(text), "\n")
	dir, ours := strings.CutPrefix(line, "go install "+strings.TrimPrefix(first, "module ")+"/")
	dir, latest := strings.CutSuffix(dir, "@latest")
	if _, err := os.Stat(filepath.Join(root, dir, "main.go")); !ours || !latest || err != nil {
		t.Errorf("%s: %q installs no program of coven: %v", file, line, err)
	}
}

// The story readme runs the commands of the README's first hour, in that order.
func TestReadme(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	story, err := os.ReadFile(filepath.Join("testdata", "script", "readme.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	_, hour, _ := strings.Cut(string(readme), "\n## The first hour\n")
	hour, _, _ = strings.Cut(hour, "\nAnd then:\n")
	lines := shellLines(hour)
	if len(lines) < 5 {
		t.Fatalf("the first hour has %d commands", len(lines))
	}
	rest := strings.ReplaceAll(string(story), "'", `"`) // a story quotes with '
	for _, line := range lines {
		_, after, found := strings.Cut(rest, "exec "+line+"\n")
		if !found {
			t.Errorf("the story does not run, in this place: %s", line)
			continue
		}
		rest = after
	}
}

// shellLines returns the commands in blocks marked sh.
func shellLines(text string) []string {
	var lines []string
	inside := false
	for line := range strings.SplitSeq(text, "\n") {
		switch {
		case strings.HasPrefix(line, "```"):
			inside = line == "```sh"
		case inside && strings.TrimSpace(line) != "":
			command, _, _ := strings.Cut(line, " #")
			lines = append(lines, strings.TrimSpace(command))
		}
	}
	return lines
}

// parses checks a command line against the command it names.
func parses(t *testing.T, file, line string) {
	t.Helper()
	a := root.NewApp("dev")
	a.Out, a.Err = io.Discard, io.Discard
	root := root.NewRoot(a)
	root.InitDefaultHelpCmd()
	cmd, rest, err := root.Find(words(line)[1:])
	if err != nil || cmd == root {
		t.Errorf("%s: %q: no such command", file, line)
		return
	}
	if err := cmd.ParseFlags(rest); err != nil {
		t.Errorf("%s: %q: %v", file, line, err)
		return
	}
	if err := cmd.ValidateArgs(cmd.Flags().Args()); err != nil {
		t.Errorf("%s: %q: %v", file, line, err)
	}
}

// words splits a line at blanks outside double quotes.
func words(line string) []string {
	var out []string
	for i, part := range strings.Split(line, `"`) {
		if i%2 == 1 {
			out = append(out, part)
			continue
		}
		out = append(out, strings.Fields(part)...)
	}
	return out
}

// links checks that relative links have a target.
func links(t *testing.T, file, text string) {
	t.Helper()
	for _, part := range strings.Split(text, "](")[1:] {
		link, _, _ := strings.Cut(part, ")")
		link, _, _ = strings.Cut(link, "#")
		if link == "" || strings.Contains(link, "://") {
			continue
		}
		if _, err := os.Stat(filepath.Join(filepath.Dir(file), link)); err != nil {
			t.Errorf("%s links to %s: %v", file, link, err)
		}
	}
}

// The YAML in guides is a valid grimoire or user configuration.
func TestGuides(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "..", "docs", "guides", "*.md"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no guides: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range strings.Split(string(text), "```yaml\n")[1:] {
			block, _, _ := strings.Cut(part, "```")
			switch {
			case strings.HasSuffix(file, "grimoires.md"): // TestGrimoiresGuide
			case strings.Contains(block, "\nargv:"): // a tool; the story agentguides calls coven with it
			case strings.HasPrefix(block, "plugins:"):
				err = lockText(t, block)
			case strings.Contains(block, "steps:"):
				_, err = grimoires.Parse(file, []byte(block))
			default:
				err = settings(t, block)
			}
			if err != nil {
				t.Errorf("%v\nin\n%s", err, block)
			}
		}
	}
}

// Every row of the guide about projects names tests that exist.
func TestProjectsGuide(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "guides", "projects.md"))
	if err != nil {
		t.Fatal(err)
	}
	tests := 0
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) != 5 || !strings.Contains(cells[3], "`") {
			continue
		}
		for name := range strings.SplitSeq(cells[3], ",") {
			tests++
			name = strings.Trim(name, " `")
			stories, _ := filepath.Glob(filepath.Join("testdata", "*", name+".txtar"))
			if len(stories) == 0 && !strings.HasPrefix(name, "Test") {
				t.Errorf("there is no story %s", name)
			}
			if strings.HasPrefix(name, "Test") && !hasTest(t, name) {
				t.Errorf("there is no test %s", name)
			}
		}
	}
	if tests < 30 {
		t.Errorf("the table has %d tests", tests)
	}
}

// hasTest reports whether a package has a test function with this name.
func hasTest(t *testing.T, name string) bool {
	t.Helper()
	for _, dir := range []string{"internal", "worktree", "runner", "plugins"} {
		found := false
		err := filepath.WalkDir(filepath.Join("..", "..", dir), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || found || !strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			found = bytes.Contains(text, []byte("func "+name+"("))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if found {
			return true
		}
	}
	return false
}

// settings parses a text as a user's configuration.
func settings(t *testing.T, text string) error {
	t.Helper()
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "coven"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "coven", "config.yaml"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	_, err := config.Sources{Root: t.TempDir(), Getenv: func(key string) string { return map[string]string{"XDG_CONFIG_HOME": dir}[key] }}.Load()
	return err
}

// lockText parses a text as plugins.lock.
func lockText(t *testing.T, text string) error {
	t.Helper()
	root := t.TempDir()
	if err := os.Mkdir(filepath.Join(root, ".coven"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, pluginregistry.LockFile), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	lock, err := pluginregistry.ReadLock(root)
	if err == nil && len(lock) == 0 {
		err = errors.New("it names no plugin")
	}
	return err
}

// This coven can read the example of plugins.lock.
func TestLockDoc(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "formats", "plugins-lock.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, block, _ := strings.Cut(string(text), "```yaml\n")
	block, _, _ = strings.Cut(block, "```")
	if err := lockText(t, block); err != nil {
		t.Errorf("%v\nin\n%s", err, block)
	}
}

// This coven can read the example of a request.
func TestRequestDoc(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "formats", "session.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, block, _ := strings.Cut(string(text), "```json\n{\"kind\"")
	block, _, _ = strings.Cut(block, "```")
	dec := json.NewDecoder(strings.NewReader("{\"kind\"" + block))
	dec.DisallowUnknownFields()
	var r session.Request
	if err := dec.Decode(&r); err != nil || r.Kind != session.KindMessage || r.Text == "" {
		t.Errorf("%+v, %v", r, err)
	}
}

// This coven can read the example of an event.
func TestSessionDoc(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "formats", "session.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, block, _ := strings.Cut(string(text), "```json\n")
	block, _, _ = strings.Cut(block, "```")
	dec := json.NewDecoder(strings.NewReader(block))
	dec.DisallowUnknownFields()
	var e event.Event
	if err := dec.Decode(&e); err != nil {
		t.Fatal(err)
	}
	var started event.Session
	data := json.NewDecoder(strings.NewReader(string(e.Data)))
	data.DisallowUnknownFields()
	if err := data.Decode(&started); err != nil || started.Query != "Add a flag" {
		t.Errorf("%+v, %v", started, err)
	}
}

// docs/commands.md matches the help of the program.
func TestCommandsPage(t *testing.T) {
	file := filepath.Join("..", "..", "docs", "commands.md")
	page, err := manual.Markdown(root.NewRoot(root.NewApp("dev")))
	if err != nil {
		t.Fatal(err)
	}
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(file, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	present, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(present) != page {
		t.Errorf("%s differs from the program's help: UPDATE=1 go test ./cmd/coven -run TestCommandsPage", file)
	}
}
