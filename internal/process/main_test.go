package process

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"
)

// TestMain also makes the test binary the launcher command and the tests' helper
// programs.
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
	if helper, ok := helpers[verb]; ok {
		helper(os.Args[2:])
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// own is a coven that owns one hostile child. After starting it, it follows the
// command on its standard input.
func own(dir, leak string) int {
	l := must(NewLauncher(must(ownProgram()), "exec"))
	child := must(l.Start(context.Background(), Spec{
		Argv: hostile{dir}.argv(), Env: []string{"PATH=" + os.Getenv("PATH")}, Grace: 200 * time.Millisecond,
	}))
	go func() { _, _ = io.Copy(io.Discard, child.Output()) }()
	if leak == "leak" { // another process keeps the control pipe open
		bystander := exec.Command("sleep", "1000")
		bystander.ExtraFiles = []*os.File{child.link.control}
		if err := bystander.Start(); err != nil {
			panic(err)
		}
		fmt.Println(bystander.Process.Pid)
	}
	fmt.Println(l.Containment())
	order := must(bufio.NewReader(os.Stdin).ReadString('\n'))
	if order == "stop\n" {
		child.Stop(nil)
	} else {
		must(io.WriteString(child.Stdin(), order))
	}
	fmt.Println(child.Wait())
	return 0
}

// limit bounds every wait of these tests. A healthy test never comes near it.
const limit = 60 * time.Second

func launcher(t testing.TB, containment Containment) *Launcher {
	t.Helper()
	l, err := newLauncher(containment, []string{must(ownProgram()), "exec"})
	if err != nil {
		t.Fatal(err)
	}
	if containment != 0 && l.Containment() != containment {
		t.Fatalf("containment is %s: %v", l.Containment(), l.Refused())
	}
	return l
}

// contained runs a test under each containment.
func contained(t *testing.T, test func(t *testing.T, l *Launcher)) {
	t.Helper()
	for _, containment := range containments() {
		t.Run(containment.String(), func(t *testing.T) {
			t.Parallel()
			test(t, launcher(t, containment))
		})
	}
}

// adopted runs a test under each containment that also holds orphans.
func adopted(t *testing.T, test func(t *testing.T, l *Launcher)) {
	t.Helper()
	contained(t, func(t *testing.T, l *Launcher) {
		if l.Containment() == ProcessGroup {
			t.Skip("an orphan with a session of its own escapes")
		}
		test(t, l)
	})
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

func readLine(t *testing.T, r io.Reader) string {
	t.Helper()
	var line []byte
	for one := make([]byte, 1); ; {
		if _, err := io.ReadFull(r, one); err != nil {
			t.Fatalf("after %q: %v", line, err)
		}
		if one[0] == '\n' {
			return string(line)
		}
		line = append(line, one[0])
	}
}

// wait returns the child's exit, or fails the test instead of hanging.
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

// eventually polls a condition that no descriptor can signal.
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

// pass sleeps where there is nothing to wait for: between two samples, while something must not
// happen, or on the clock of a synctest bubble.
func pass(d time.Duration) { <-time.After(d) }

func must[T any](value T, err error) T {
	if err != nil {
		panic(fmt.Sprint("test set-up: ", err))
	}
	return value
}
