package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coven-run/coven/internal/cli/root"
)

// unadvised names the environment variable with the file to which the coven of the stories appends each
// error that it printed without a next command.
const unadvised = "COVEN_UNADVISED"

// watchAdvice fails the test if coven prints an error without a next command in one of its stories.
//
// C-138: every error has a next command.
func watchAdvice(t *testing.T) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "unadvised")
	t.Setenv(unadvised, file)
	t.Cleanup(func() {
		if text, err := os.ReadFile(file); err == nil {
			t.Errorf("errors without a next command:\n%s", text)
		}
	})
}

// watched runs coven and records the errors that it prints without a next command.
func watched() {
	app := root.NewApp(version)
	eye := &adviceWatcher{to: app.Err}
	app.Err = eye
	follow := followAdvice(app)
	code := root.Run(app, os.Args[1:])
	follow()
	if file := os.Getenv(unadvised); file != "" && eye.last != "" {
		if err := appendLine(file, fmt.Sprintf("%q: %s", os.Args[1:], eye.last)); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	os.Exit(code)
}

func appendLine(file, line string) error {
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // the write counts
	_, err = io.WriteString(f, line)
	return err
}

// adviceWatcher passes on the output of coven, and keeps the last error that no next command follows.
type adviceWatcher struct {
	to   io.Writer
	last string
}

func (w *adviceWatcher) Write(p []byte) (int, error) {
	switch text := string(p); {
	case strings.HasPrefix(text, "coven: "):
		w.last = text
	case strings.HasPrefix(text, "  next: "):
		w.last = ""
	}
	return w.to.Write(p)
}
