package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// If coven is killed while it writes the index of the sessions, the next command gives the same answers,
// and the index is complete in the end.
func TestSessionIndexSurvivesKills(t *testing.T) {
	r := finished(t, 40)
	index := filepath.Join(r.root, ".coven/run/sessions.index")
	status := func(env ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), "coven", "status", "--all", "--json")
		cmd.Dir, cmd.Env = r.root, append(env, r.env...)
		out, err := cmd.Output()
		return string(out), err
	}
	want, err := status()
	must(t, err)
	if n := strings.Count(want, `"session_id"`); n != 40 {
		t.Fatalf("%d sessions", n)
	}
	for _, point := range []string{"session.index.begun", "session.index.written"} {
		for deadline := time.Now().Add(patience); ; pause() { // until the sessions are old enough for the index
			must(t, os.RemoveAll(index))
			_, err := status("COVEN_CRASH_POINT=" + point)
			if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL {
				break
			}
			must(t, err)
			if time.Now().After(deadline) {
				t.Fatalf("%s was not reached", point)
			}
		}
		if _, err := os.Stat(index); err == nil {
			t.Fatalf("there is an index after a kill at %s", point)
		}
		if got, err := status(); err != nil || got != want {
			t.Fatalf("after a kill at %s: %v\n%s", point, err, got)
		}
		minuteAgo := time.Now().Add(-time.Minute)
		must(t, os.Chtimes(index+".new", minuteAgo, minuteAgo)) // no process writes it any more
	}
	for range 2 { // the first command creates the index, the second uses it
		if got, err := status(); err != nil || got != want {
			t.Fatalf("%v\n%s", err, got)
		}
		if _, err := os.Stat(index); err != nil {
			t.Fatal(err)
		}
	}
	must(t, os.Remove(index))
	if got, err := status(); err != nil || got != want {
		t.Fatalf("%v\n%s", err, got)
	}
}
