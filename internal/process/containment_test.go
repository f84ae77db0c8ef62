//go:build linux

package process

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

func TestContainmentByEnvironment(t *testing.T) {
	for _, want := range containments() {
		t.Setenv(ContainmentEnv, want.String())
		l, err := NewLauncher("/proc/self/exe", "exec")
		if err != nil {
			t.Fatal(err)
		}
		if got := l.Containment(); got != want || l.Refused() != nil {
			t.Errorf("containment is %s (%v), want %s", got, l.Refused(), want)
		}
	}
	t.Setenv(ContainmentEnv, "hope")
	if _, err := NewLauncher("/proc/self/exe", "exec"); err == nil || !strings.Contains(err.Error(), `"hope"`) {
		t.Errorf("an unknown containment: %v", err)
	}
}

func TestNewLauncherErrors(t *testing.T) {
	t.Setenv(ContainmentEnv, "")
	if _, err := NewLauncher(); err == nil {
		t.Error("a launcher without a command")
	}
	if _, err := NewLauncher("/no/such/launcher"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a launcher that is not there: %v", err)
	}
}

// If the probe fails, the launcher falls back and reports the reason, unless the user
// forces the containment.
func TestRefusedNamespace(t *testing.T) {
	l := must(newLauncher(0, []string{"/bin/false"}))
	if l.Containment() != Subreaper || l.Refused() == nil {
		t.Errorf("containment is %s: %v", l.Containment(), l.Refused())
	}
	l = must(newLauncher(PIDNamespace, []string{"/bin/false"}))
	if _, err := l.Start(t.Context(), Spec{Argv: []string{"/bin/true"}}); err == nil || !strings.Contains(err.Error(), ContainmentEnv) {
		t.Errorf("start: %v", err)
	}
	if _, _, err := l.Command("/bin/true"); err == nil {
		t.Error("a command without its containment")
	}
}

// A broken launcher is distinguished from a failing program.
func TestBrokenLauncher(t *testing.T) {
	l := must(newLauncher(Subreaper, []string{"/bin/sh", "-c", "echo a complaint >&2"}))
	if _, err := l.Start(t.Context(), Spec{Argv: []string{"/bin/true"}}); !errors.Is(err, ErrLauncher) || !strings.Contains(err.Error(), "a complaint") {
		t.Errorf("start: %v", err)
	}
	output, err := exec.Command("/proc/self/exe", "exec").CombinedOutput()
	if err == nil || !strings.Contains(string(output), "is started by coven itself") {
		t.Errorf("started by hand: %v: %s", err, output)
	}
}

// A shim that is wrongly started as an init signals no process.
func TestFalseInit(t *testing.T) {
	l := launcher(t, PIDNamespace)
	link := must(newLink(l.order(mode{containment: PIDNamespace}, order{Probe: true, Inherit: true}), nil))
	cmd := l.shim(t.Context(), mode{containment: Subreaper}, link) // started without the namespace
	output, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(output), "not the init") {
		t.Errorf("%v: %s", err, output)
	}
	namespaceTree{}.signal(syscall.Signal(0)) // this process is not an init either
	if err := link.close(); err != nil {
		t.Error(err)
	}
}

func TestKilledLauncher(t *testing.T) {
	child := start(t, launcher(t, PIDNamespace), Spec{Argv: []string{"/bin/sleep", "1000"}})
	child.kill()
	if exit := wait(t, child); !errors.Is(exit.Err, ErrLauncher) || exit.OK() {
		t.Errorf("exit is %+v", exit)
	}
}
