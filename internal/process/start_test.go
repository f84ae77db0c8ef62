//go:build linux

package process

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/coven-run/coven/internal/process/memoryfile"
)

func TestStartErrors(t *testing.T) {
	dir := t.TempDir()
	file := func(name, content string, bits os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), bits); err != nil {
			t.Fatal(err)
		}
		return path
	}
	plainFile := file("plain", "#!/bin/sh\n", 0o644)
	orphaned := file("orphaned", "#!/no/such/interpreter\n", 0o755)
	noise := file("noise", "\x00\x01", 0o755)
	file("relative", "#!/bin/sh\n", 0o755)
	path := []string{"PATH=" + dir + ":/usr/bin:/bin"}
	tests := map[string]struct {
		spec Spec
		is   error
		says string
	}{
		"not on PATH":      {Spec{Argv: []string{"no-such-program"}, Env: path}, ErrNotFound, "start no-such-program: not found on PATH"},
		"also not exist":   {Spec{Argv: []string{"no-such-program"}, Env: path}, fs.ErrNotExist, ""},
		"no PATH at all":   {Spec{Argv: []string{"sh"}}, ErrNotFound, ""},
		"relative PATH":    {Spec{Argv: []string{"relative"}, Env: []string{"PATH=.:"}, Dir: dir}, ErrNotFound, ""},
		"denied on PATH":   {Spec{Argv: []string{"plain"}, Env: path}, fs.ErrPermission, plainFile},
		"no such file":     {Spec{Argv: []string{"/no/such/program"}}, fs.ErrNotExist, "start /no/such/program: no such file"},
		"not executable":   {Spec{Argv: []string{plainFile}}, fs.ErrPermission, "permission denied"},
		"no interpreter":   {Spec{Argv: []string{orphaned}}, fs.ErrNotExist, "its interpreter"},
		"no program":       {Spec{Argv: []string{noise}}, syscall.ENOEXEC, "exec format error"},
		"no such dir":      {Spec{Argv: []string{"/bin/sh"}, Dir: "/no/such/dir"}, fs.ErrNotExist, "chdir /no/such/dir"},
		"dir is a file":    {Spec{Argv: []string{"/bin/sh"}, Dir: plainFile}, syscall.ENOTDIR, "chdir"},
		"argument too big": {Spec{Argv: []string{"/bin/sh", strings.Repeat("x", 200_000)}}, syscall.E2BIG, ""},
		"NUL":              {Spec{Argv: []string{"/bin/sh", "a\x00b"}}, nil, "NUL"},
		"nothing":          {Spec{}, nil, "no program given"},
	}
	contained(t, func(t *testing.T, l *Launcher) {
		for name, test := range tests {
			child, err := l.Start(t.Context(), test.spec)
			switch {
			case err == nil:
				t.Errorf("%s: started: %v", name, child.Close())
			case test.is != nil && !errors.Is(err, test.is), !strings.Contains(err.Error(), test.says):
				t.Errorf("%s: %v", name, err)
			case errors.Is(err, ErrLauncher):
				t.Errorf("%s: blames the launcher: %v", name, err)
			}
		}
	})
}

func TestEnvironmentIsExact(t *testing.T) {
	t.Setenv("COVEN_TEST_INHERITED", "1")
	env := []string{"B=2", "A=1", "A=again", "EMPTY=", "BYTES=\xff\xfe\n'\"", "no equals sign"}
	contained(t, func(t *testing.T, l *Launcher) {
		child := start(t, l, Spec{Argv: []string{"/bin/cat", "/proc/self/environ"}, Env: env})
		if got, want := readAll(t, child.Output()), strings.Join(env, "\x00")+"\x00"; got != want {
			t.Errorf("environment is %q, want %q", got, want)
		}
		child = start(t, l, Spec{Argv: []string{"/bin/cat", "/proc/self/environ"}, Env: []string{}})
		if got := readAll(t, child.Output()); got != "" {
			t.Errorf("environment is %q, want none", got)
		}
	})
}

func TestArgvAndDirAreExact(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a dir\xff")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	args := []string{"", "-x", "\xff\n", "$HOME `x`", strings.Repeat("y", 100_000)}
	contained(t, func(t *testing.T, l *Launcher) {
		child := start(t, l, Spec{Argv: shell(`pwd; printf '%s|' "$@"`, args...), Dir: dir})
		if got, want := readAll(t, child.Output()), dir+"\n"+strings.Join(args, "|")+"|"; got != want {
			t.Errorf("got %.200q, want %.200q", got, want)
		}
	})
}

// Process lists show neither task text nor secrets in the shims.
func TestShimShowsNothing(t *testing.T) {
	contained(t, func(t *testing.T, l *Launcher) {
		child := start(t, l, Spec{Argv: shell("echo up; read x", "secret-argument"), Env: []string{"PATH=/bin:/usr/bin", "KEY=secret-value"}})
		readLine(t, child.Output())
		shims := []int{child.process.Pid}
		if l.Containment() == Subreaper {
			shims = append(shims, childrenOf(child.process.Pid)...)
		}
		for _, pid := range shims {
			cmdline := must(os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)))
			if !strings.HasPrefix(string(cmdline), "/proc/self/exe\x00exec\x00") || strings.Contains(string(cmdline), "secret") {
				t.Errorf("command line of the shim: %q", cmdline)
			}
			environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
			if err != nil && !errors.Is(err, fs.ErrPermission) || len(environ) != 0 { // a shim is not accessible
				t.Errorf("environment of the shim: %q, %v", environ, err)
			}
		}
	})
}

// The program does not inherit coven's own environment, descriptors and signals.
func TestNothingIsInherited(t *testing.T) {
	foreign := must(os.Open(os.DevNull))
	defer func() { _ = foreign.Close() }()
	if _, err := syscall.Dup(int(foreign.Fd())); err != nil { // without close-on-exec
		t.Fatal(err)
	}
	signal.Ignore(syscall.SIGUSR2, syscall.SIGTSTP, syscall.SIGPIPE)
	defer signal.Reset(syscall.SIGUSR2, syscall.SIGTSTP, syscall.SIGPIPE)
	for _, containment := range containments() {
		l := launcher(t, containment)
		child := start(t, l, Spec{Argv: []string{"/bin/ls", "-1", "/proc/self/fd"}})
		if got := readAll(t, child.Output()); got != "0\n1\n2\n3\n" { // 3 belongs to the listing
			t.Errorf("%s: descriptors %q", containment, got)
		}
		child = start(t, l, Spec{Argv: []string{"/bin/grep", "-E", "^Sig(Blk|Ign)|^CapAmb", "/proc/self/status"}})
		for line := range strings.Lines(readAll(t, child.Output())) {
			if !strings.HasSuffix(line, ":\t0000000000000000\n") {
				t.Errorf("%s: %s", containment, line)
			}
		}
	}
}

func TestSessionWithoutTerminal(t *testing.T) {
	contained(t, func(t *testing.T, l *Launcher) {
		child := start(t, l, Spec{Argv: shell(`
			test $$ = $(ps -o sid= -p $$) && echo leader
			(: </dev/tty) 2>/dev/null || echo no controlling terminal
			test -t 0 || echo input is no terminal
			test -t 1 && test -t 2 && stty size <&1
			exec 3>&1; stty -a <&3 | grep -o -e -opost`), Size: Size{Rows: 7, Cols: 99}})
		want := "leader\nno controlling terminal\ninput is no terminal\n7 99\n-opost\n"
		if got := readAll(t, child.Output()); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

func TestContextDone(t *testing.T) {
	contained(t, func(t *testing.T, l *Launcher) {
		reason := errors.New("the user said so")
		ctx, cancel := context.WithCancelCause(t.Context())
		child, err := l.Start(ctx, Spec{Argv: []string{"/bin/sleep", "1000"}})
		if err != nil {
			t.Fatal(err)
		}
		cancel(reason)
		exit := wait(t, child)
		if !errors.Is(exit.Cause, reason) || exit.Signal != syscall.SIGTERM || exit.Code != 128+15 {
			t.Errorf("exit is %+v", exit)
		}
		if err := child.Close(); err != nil {
			t.Error(err)
		}
		if _, err := l.Start(ctx, Spec{Argv: []string{"/bin/sleep", "1000"}}); !errors.Is(err, reason) {
			t.Errorf("start with a done context: %v", err)
		}
	})
}

// A program cannot end the init of its namespace by any signal.
func TestInitSurvivesSignals(t *testing.T) {
	l := launcher(t, PIDNamespace)
	for range 20 { // a signal that is not ignored ends the init only sometimes
		child := start(t, l, Spec{Argv: shell(`grep -q /proc/self/exe /proc/1/cmdline || exit 9
			for n in $(seq 1 64); do kill -$n 1 2>/dev/null; done; sleep 0.01; echo alive`)})
		if got := readAll(t, child.Output()); got != "alive\n" {
			t.Fatalf("got %q", got)
		}
		if exit := wait(t, child); !exit.OK() {
			t.Fatalf("exit is %v", exit)
		}
	}
}

// A program does not start if its shim was killed before it reported the process.
func TestFenceWaits(t *testing.T) {
	for text, begins := range map[string]bool{"": false, "g": true} {
		file := filepath.Join(t.TempDir(), "begun")
		memory := must(memoryfile.New("order"))
		o := order{Containment: ProcessGroup, Argv: texts([]string{"/bin/sh", "-c", "echo x >" + file}), Inherit: true}
		if err := json.NewEncoder(memory).Encode(o); err != nil {
			t.Fatal(err)
		}
		reader, writer, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		gate, open, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(must(os.Executable()), "exec", fenceStage)
		cmd.ExtraFiles = []*os.File{memory, writer, gate} // orderFd, fenceFd, gateFd
		_, err = open.WriteString(text)
		if err = errors.Join(err, open.Close()); err != nil {
			t.Fatal(err)
		}
		said, err := cmd.CombinedOutput()
		if _, missing := os.Stat(file); (missing == nil) != begins || (err == nil) != begins {
			t.Errorf("the shim wrote %q: %v, %v, %s", text, missing, err, said)
		}
		if err := closeAll(memory, reader, writer, gate); err != nil {
			t.Error(err)
		}
	}
}
