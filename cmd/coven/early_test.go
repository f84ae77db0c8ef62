package main

import (
	"errors"
	"os/exec"
	"strings"
	"testing"
)

// Each task starts the launcher at least twice. It must do its work before most of coven is initialized,
// which would take longer.
func TestLauncherStartsEarly(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "coven", "exec")
	cmd.Env = []string{"GODEBUG=inittrace=1"}
	out, err := cmd.CombinedOutput()
	if exited := (*exec.ExitError)(nil); !errors.As(err, &exited) || exited.ExitCode() != 2 || !strings.Contains(string(out), "is started by coven itself") {
		t.Fatalf("coven exec: %v\n%s", err, out)
	}
	if !strings.Contains(string(out), "init internal/") {
		t.Fatalf("Go reports no initialization:\n%s", out)
	}
	for _, late := range []string{"init regexp ", "init github.com/coven-run/coven/internal/text/tmpl ", "init github.com/coven-run/coven/grimoires ", "init google.golang.org/grpc "} {
		if strings.Contains(string(out), late) {
			t.Errorf("the launcher waits for %q", late)
		}
	}
}
