package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/cli/grimoire"
	"github.com/coven-run/coven/internal/config"
	"github.com/coven-run/coven/internal/project"
)

// named is a block of a guide under a line with the name of its file.
var named = regexp.MustCompile("(?s)\n`(\\.coven/[^`]*)`\n\n```[a-z]+\n(.*?)```")

// The files in the guide to grimoires are consistent: they are valid, and the tests among them pass and
// reach all branches except those named here.
func TestGrimoiresGuide(t *testing.T) {
	text, err := os.ReadFile("../../docs/guides/grimoires.md")
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	blocks := named.FindAllStringSubmatch(string(text), -1)
	for _, b := range blocks {
		file := filepath.Join(root, b[1])
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(b[2]), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if all := strings.Count(string(text), "```yaml") + strings.Count(string(text), "```md"); len(blocks) != all || all < 6 {
		t.Fatalf("%d of %d blocks are files", len(blocks), all)
	}
	proj := &project.Project{Library: grimoires.NewLibrary(root, ""), Config: config.Default()}
	checked, err := proj.Library.Validate()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range checked {
		for _, p := range c.Problems {
			t.Errorf("%s: %v", c.File, p)
		}
	}
	reports, err := grimoire.TestAll(t.Context(), proj, []string{"careful"})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range reports[0].Tests {
		for _, f := range o.Faults {
			t.Errorf("%s: %s", o.Test, f)
		}
	}
	var missing []string
	for _, m := range reports[0].Missing {
		missing = append(missing, m.Step+" "+m.What)
	}
	if got := strings.Join(missing, ", "); got != "implement never fails, fix never fails, changelog never fails, land never fails" {
		t.Errorf("branches that no test reaches: %s", got)
	}
}

// step is a block of a guide: a file under a line with its name, or commands.
var step = regexp.MustCompile("(?s)\n(?:`([^`\n]*)`\n\n)?```([a-z]+)\n(.*?)```")

// cmdGuide implements guide FILE BLOCKS: it follows a guide with the given number of blocks. It writes the
// files and runs the commands, in order, in one shell, with $COVEN_SOURCE and $REPOSITORY set. Go downloads
// nothing. All YAML in the guide must be files.
func cmdGuide(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 2, "guide FILE BLOCKS")
	source, err := filepath.Abs(filepath.Join("..", ".."))
	ts.Check(err)
	text, err := os.ReadFile(filepath.Join(source, "docs", "guides", args[0]))
	ts.Check(err)
	// The home is that of the script. With other flags, go would compile everything again.
	for _, name := range []string{"GOCACHE", "GOMODCACHE", "GOFLAGS", "CGO_ENABLED"} {
		out, err := exec.Command("go", "env", name).Output()
		ts.Check(err)
		ts.Setenv(name, strings.TrimSpace(string(out)))
	}
	ts.Setenv("GOPROXY", "off")
	ts.Setenv("GOSUMDB", "off")
	ts.Setenv("COVEN_SOURCE", source)
	ts.Setenv("REPOSITORY", ts.MkAbs("."))
	script := &strings.Builder{}
	blocks := 0
	for _, m := range step.FindAllStringSubmatch(string(text), -1) {
		switch name, kind, content := m[1], m[2], m[3]; {
		case name != "":
			blocks++
			fmt.Fprintf(script, "cat >%s <<'END OF FILE'\n%sEND OF FILE\n", name, content)
		case kind == "bash":
			blocks++
			script.WriteString(content)
		case kind != "sh": // TestDocs checks those
			ts.Fatalf("%s: a block of %s is neither a file nor commands", args[0], kind)
		}
	}
	if strconv.Itoa(blocks) != args[1] {
		ts.Fatalf("%s: %d blocks", args[0], blocks)
	}
	ts.Check(os.WriteFile(ts.MkAbs(filepath.Join(ts.Getenv("HOME"), "guide")), []byte(script.String()), 0o644))
	ts.Check(ts.Exec("sh", "-eux", filepath.Join(ts.Getenv("HOME"), "guide")))
}

// cmdFirst implements first GUIDE [N]: it runs the first commands of a guide, N or a whole block. They must succeed, or leave
// something that waits for a person.
func cmdFirst(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 || len(args) > 2 {
		ts.Fatalf("usage: first GUIDE [N]")
	}
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "guides", args[0]))
	ts.Check(err)
	_, block, _ := strings.Cut(string(text), "```sh\n")
	block, _, _ = strings.Cut(block, "```")
	lines := strings.Split(strings.TrimSpace(block), "\n")
	if len(args) == 2 {
		n, err := strconv.Atoi(args[1])
		ts.Check(err)
		lines = lines[:n]
	}
	for _, line := range lines {
		ts.Check(ts.Exec("sh", "-c", line+"\nexit $(($? == 3 ? 0 : $?))"))
	}
}
