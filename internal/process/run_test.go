package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
)

func TestRun(t *testing.T) {
	env := []string{"PATH=" + os.Getenv("PATH")}
	contained(t, func(t *testing.T, l *Launcher) {
		exit, output, err := l.Run(t.Context(), Spec{Argv: shell("cat; echo out; echo err >&2; exit 3"), Env: env})
		if err != nil || exit != (Exit{Code: 3}) || string(output) != "out\nerr\n" {
			t.Errorf("%+v, %q, %v", exit, output, err)
		}
		if _, _, err := l.Run(t.Context(), Spec{Argv: []string{"no-such-program"}, Env: env}); !errors.Is(err, ErrNotFound) {
			t.Errorf("a missing program: %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		writer := writerFunc(func(p []byte) (int, error) { cancel(); return len(p), nil })
		exit, output, err = l.Run(ctx, Spec{Argv: shell("echo up; sleep 1000"), Env: env, Transcript: writer})
		if err != nil || !errors.Is(exit.Cause, context.Canceled) || string(output) != "up\n" {
			t.Errorf("%+v, %q, %v", exit, output, err)
		}
	})
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func TestRunKeepsHeadAndTail(t *testing.T) {
	l := launcher(t, 0)
	var all bytes.Buffer
	_, output, err := l.Run(t.Context(), Spec{
		Argv: shell("seq 1 1000000"), Env: []string{"PATH=" + os.Getenv("PATH")}, Transcript: &all,
	})
	if err != nil {
		t.Fatal(err)
	}
	half := MaxCapture / 2
	gap := fmt.Sprintf("\n[... %d bytes cut ...]\n", all.Len()-MaxCapture)
	if want := all.String()[:half] + gap + all.String()[all.Len()-half:]; string(output) != want {
		t.Errorf("%d bytes of %d, or not the same", len(output), all.Len())
	}
}

func TestCapture(t *testing.T) {
	tests := map[string]string{
		"":              "",
		"abc":           "abc",
		"abcdefgh":      "abcdefgh",
		"abcdefghi":     "abcd\n[... 1 bytes cut ...]\nfghi",
		"abcdefghijklm": "abcd\n[... 5 bytes cut ...]\njklm",
	}
	for text, want := range tests {
		for size := 1; size <= len(text)+1; size++ {
			c := &capture{half: 4}
			if _, err := io.CopyBuffer(struct{ io.Writer }{c}, struct{ io.Reader }{strings.NewReader(text)}, make([]byte, size)); err != nil {
				t.Fatal(err)
			}
			if got := string(c.bytes()); got != want {
				t.Errorf("%q by %d: %q, want %q", text, size, got, want)
			}
		}
	}
}
