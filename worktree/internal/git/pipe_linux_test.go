package git

import (
	"context"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// A child that runs, or that waits for something else, does not wait for a pipe: to look for pipes means to read all directories.
func TestWaitsForPipe(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for script, waits := range map[string]bool{"while :; do :; done": false, "exec sleep 1000": false, "exec cat '" + pipe + "'": true} {
		cmd := exec.CommandContext(ctx, "sh", "-c", script)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for {
			found, known := waitsForPipe(cmd.Process.Pid)
			if found && !waits {
				t.Errorf("%s: it waits for a pipe", script)
			}
			if known && found == waits || t.Failed() {
				break
			}
			if ctx.Err() != nil {
				t.Fatalf("%s: %t, %t", script, found, known)
			}
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
	}
}
