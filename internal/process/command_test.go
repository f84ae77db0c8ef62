package process

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// contain returns a command with the test's PATH.
func contain(t *testing.T, l *Launcher, argv ...string) (*exec.Cmd, func()) {
	t.Helper()
	cmd, release, err := l.Command(argv...)
	if err != nil {
		t.Fatal(err)
	}
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "KEY=value"}
	return cmd, release
}

func TestCommand(t *testing.T) {
	contained(t, func(t *testing.T, l *Launcher) {
		cmd, release := contain(t, l, shell("cat; echo $KEY; pwd; echo err >&2; exit 6")...)
		var stdout, stderr bytes.Buffer
		cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader("in\n"), &stdout, &stderr
		cmd.Dir = t.TempDir()
		err := cmd.Run()
		release()
		if code := cmd.ProcessState.ExitCode(); code != 6 {
			t.Errorf("exit code %d: %v", code, err)
		}
		if got, want := stdout.String(), "in\nvalue\n"+cmd.Dir+"\n"; got != want {
			t.Errorf("standard output %q, want %q", got, want)
		}
		if got := stderr.String(); got != "err\n" {
			t.Errorf("standard error %q", got)
		}
	})
}

func TestCommandNotFound(t *testing.T) {
	contained(t, func(t *testing.T, l *Launcher) {
		cmd, release := contain(t, l, "no-such-program")
		output, err := cmd.CombinedOutput()
		release()
		if cmd.ProcessState.ExitCode() != 127 || !strings.Contains(string(output), "exec no-such-program: not found on PATH") {
			t.Errorf("%v: %q", err, output)
		}
		if _, _, err := l.Command(); err == nil {
			t.Error("a command without a program")
		}
	})
}

// Killing the command, like a plugin host does, kills the tree.
func TestCommandKilled(t *testing.T) {
	adopted(t, func(t *testing.T, l *Launcher) {
		h := newHostile(t)
		cmd, release := contain(t, l, h.argv()...)
		stdin := must(cmd.StdinPipe())
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		h.awaitBeating(t)
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err == nil {
			t.Error("a killed command succeeded")
		}
		release()
		h.assertDead(t)
		if _, err := io.WriteString(stdin, "x"); err == nil {
			t.Error("somebody still holds standard input")
		}
	})
}

// Processes left behind by a command are gone after Wait.
func TestCommandEnded(t *testing.T) {
	adopted(t, func(t *testing.T, l *Launcher) {
		h := newHostile(t)
		cmd, release := contain(t, l, h.argv()...)
		stdin := must(cmd.StdinPipe())
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		h.awaitBeating(t)
		must(io.WriteString(stdin, "die\n"))
		if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 137 {
			t.Errorf("ended with %v", err)
		}
		release()
		h.assertDead(t)
	})
}
