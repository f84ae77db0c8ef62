package workspace

import (
	"strings"
	"testing"
)

// The last line of a stopped program identifies a pager, a watcher or server, and a question.
func TestWaitsFor(t *testing.T) {
	for output, want := range map[string]string{
		"commit 1\n\x1b[7m(END)\x1b[27m": "pager",
		"commit 1\n:":                    "pager",
		"--More--(50%)":                  "pager",
		"Tests: 1 passed\n\nWatch Usage: Press w to show more.":                        "changes or requests",
		" PASS  Waiting for file changes...\n press h to show help, press q to quit\n": "changes or requests",
		"  VITE v5.0.0  ready in 320 ms":                                               "changes or requests",
		"  ➜  Local:   http://localhost:5173/":                                         "changes or requests",
		"Need to install the following packages:\nOk to proceed? (y) ":                 "answer",
		"Password: ":                         "answer",
		"Overwrite? [y/N]":                   "answer",
		"Username for 'https://x.example': ": "answer",
		"? Which template › - Use arrow-keys. Return to submit.\n? Name:": "answer",
		"compiling\n":       "",
		"ok 12 tests":       "",
		"":                  "",
		"\n\n":              "",
		"Downloading x 12%": "",
	} {
		if got := waitsFor(output); want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%q: %q, want %q", output, got, want)
		}
	}
}
