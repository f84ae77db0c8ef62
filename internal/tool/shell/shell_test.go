package shell_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/coven-run/coven/internal/process"
	"github.com/coven-run/coven/internal/tool/shell"
)

// TestMain also makes the test binary the launcher of children.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "exec" {
		os.Exit(process.Main(os.Args[2:]))
	}
	os.Exit(m.Run())
}

// run runs the tool with real processes.
func run(t *testing.T, ctx context.Context, arguments string) (string, error) {
	t.Helper()
	launcher, err := process.NewLauncher("/proc/self/exe", "exec")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	bash := shell.Tool(func(ctx context.Context, command string, timeout time.Duration) (process.Exit, []byte, error) {
		return launcher.Run(ctx, process.Spec{Argv: []string{"bash", "-c", command}, Dir: dir, Env: []string{"PATH=" + os.Getenv("PATH")}, Timeout: timeout, Grace: time.Millisecond})
	})
	if err := bash.Check(json.RawMessage(arguments)); err != nil {
		return "", err
	}
	return bash.Call(ctx, json.RawMessage(arguments))
}

func TestBash(t *testing.T) {
	for _, c := range []struct{ arguments, want, wrong string }{
		{`{"command":"echo one; echo two >&2"}`, "one\ntwo", ""},
		{`{"command":"true"}`, "(no output)", ""},
		{`{"command":"cat"}`, "(no output)", ""},
		{`{"command":"echo no; exit 3"}`, "", "exit code 3\nno"},
		{`{"command":"exit 3"}`, "", "exit code 3"},
		{`{"command":"kill -9 $$"}`, "", "signal killed"},
		{`{"command":"printf 'a\\377b'"}`, "a\uFFFDb", ""},
		{`{"command":"echo before; sleep 600","timeout":1}`, "", "it was stopped after 1s\nbefore"},
		{`{"command":""}`, "", `wrong arguments: command: minLength: "" contains 0 Unicode code points, fewer than 1`},
		{`{"command":"true","timeout":601}`, "", "wrong arguments: timeout: maximum: 601/1 is greater than 600.000000"},
		{`{"command":["rm"]}`, "", `wrong arguments: command: type: [rm] has type "array", want "string"`},
	} {
		got, err := run(t, t.Context(), c.arguments)
		wrong := ""
		if err != nil {
			wrong = err.Error()
		}
		if got != c.want || wrong != c.wrong {
			t.Errorf("%s: %q %q", c.arguments, got, wrong)
		}
	}
	got, err := run(t, t.Context(), `{"command":"for i in $(seq 20000); do echo $i; done"}`)
	if err != nil || len(got) > 30_100 || !strings.HasPrefix(got, "1\n2\n3\n") || !strings.HasSuffix(got, "\n19999\n20000") || !strings.Contains(got, "\n(78893 bytes are left out)\n") {
		t.Errorf("%d %v %q", len(got), err, got[max(0, len(got)/2-50):][:min(100, len(got))])
	}
}

func TestCancel(t *testing.T) {
	stop := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(stop)
	if _, err := run(t, ctx, `{"command":"sleep 600"}`); !errors.Is(err, stop) {
		t.Error(err)
	}
}
