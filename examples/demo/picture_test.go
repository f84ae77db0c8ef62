package main

import (
	"context"
	"encoding/xml"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/coven-run/coven/internal/fake/fakeclaude"
)

func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "claude" { // the stub that the demo starts
		os.Exit(fakeclaude.Main(os.Args[1:]))
	}
	os.Exit(m.Run())
}

// built builds coven.
func built(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "coven")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", file, "../../cmd/coven")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build coven: %v\n%s", err, out)
	}
	return file
}

// The README's picture is what a run shows today. make picture draws it again.
func TestPicture(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	drawn := filepath.Join(t.TempDir(), "demo.svg")
	d := &demo{coven: built(t)}
	if err := d.run(context.Background(), drawn); err != nil {
		t.Fatal(err)
	}
	now, committed := screen(t, drawn), screen(t, filepath.Join("..", "..", "docs", "demo.svg"))
	if now != committed {
		t.Errorf("docs/demo.svg differs from a run: make picture\na run shows\n%s\nthe picture shows\n%s", now, committed)
	}
}

// varying matches what differs from run to run.
var varying = regexp.MustCompile(`\b(\d+(\.\d+)?m?s|[0-9a-f]{10}|\d{4}-\d\d-\d\d)\b`)

// screen returns the rows of text in a picture, without what varies.
func screen(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var picture struct {
		Rows []string `xml:"text"`
	}
	if err := xml.Unmarshal(data, &picture); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	rows := picture.Rows
	for i, row := range rows {
		rows[i] = varying.ReplaceAllString(row, "_")
	}
	if len(rows) < 10 {
		t.Fatalf("%s shows %d rows", file, len(rows))
	}
	return strings.Join(rows, "\n")
}

// The demo says first what it does, shows its commands, and ends with what to do next.
func TestDemo(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	var out strings.Builder
	d := &demo{coven: built(t), out: &out}
	if err := d.run(t.Context(), ""); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	at := 0
	for _, want := range []string{
		"coven turns two tasks into merged changes in a scratch repository:",
		"$ coven task add 'Greet a person by name'",
		"$ coven run --auto-approve",
		"2 tasks: 2 landed",
		"$ git log --oneline",
		"$ coven status",
		"Next, in a repository of your own",
		"coven doctor",
	} {
		i := strings.Index(out.String()[at:], want)
		if i < 0 {
			t.Fatalf("missing, or out of order: %s\n%s", want, out.String())
		}
		at += i
	}
}
