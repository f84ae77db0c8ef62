package process

import (
	"fmt"
	"io"
	"os"
	"testing"
	"time"
)

// TestMain makes the test binary the launcher command, and the programs the
// tests need beside it.
func TestMain(m *testing.M) {
	verb := ""
	if len(os.Args) > 1 {
		verb = os.Args[1]
	}
	switch verb {
	case "exec":
		os.Exit(Main(os.Args[2:]))
	case "own":
		os.Exit(own(os.Args[2], os.Args[3]))
	}
	os.Exit(m.Run())
}

// limit bounds every wait of these tests; none is meant to come near it.
const limit = 60 * time.Second

func launcher(t testing.TB, containment Containment) *Launcher {
	t.Helper()
	l, err := newLauncher(containment, []string{"/proc/self/exe", "exec"})
	if err != nil {
		t.Fatal(err)
	}
	if containment != 0 && l.Containment() != containment {
		t.Fatalf("containment is %s: %v", l.Containment(), l.Refused())
	}
	return l
}

// contained runs a test under both containments.
func contained(t *testing.T, test func(t *testing.T, l *Launcher)) {
	t.Helper()
	for _, containment := range []Containment{PIDNamespace, Subreaper} {
		t.Run(containment.String(), func(t *testing.T) {
			t.Parallel()
			test(t, launcher(t, containment))
		})
	}
}

func start(t *testing.T, l *Launcher, spec Spec) *Child {
	t.Helper()
	if spec.Env == nil {
		spec.Env = []string{"PATH=" + os.Getenv("PATH")}
	}
	child, err := l.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := child.Close(); err != nil {
			t.Error(err)
		}
	})
	return child
}

func shell(script string, args ...string) []string {
	return append([]string{"sh", "-c", script, "sh"}, args...)
}

func readAll(t *testing.T, r io.Reader) string {
	t.Helper()
	data, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// wait fails the test when the child does not end, rather than hang it.
func wait(t *testing.T, child *Child) Exit {
	t.Helper()
	select {
	case <-child.done:
		return child.Wait()
	case <-time.After(limit):
		t.Fatal("the child did not end")
		return Exit{}
	}
}

// eventually polls for what no descriptor can tell.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(limit); time.Now().Before(end); {
		if holds() {
			return
		}
		pass(5 * time.Millisecond)
	}
	t.Fatal("never: " + what)
}

// pass lets time pass where there is nothing to wait for: between two looks,
// while something must not happen, or on the clock of a synctest bubble.
func pass(d time.Duration) { <-time.After(d) }

func must[T any](value T, err error) T {
	if err != nil {
		panic(fmt.Sprint("test set-up: ", err))
	}
	return value
}
