//go:build linux

package process

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A program cannot change the attributes of files outside, which Landlock does not prevent.
func TestBoundaryAttributes(t *testing.T) {
	y := newYard(t)
	l := launcher(t, PIDNamespace)
	file, link := y.other+"/file", y.root+"/link"
	state := func() string {
		t.Helper()
		var all []string
		for _, path := range []string{file, y.other, y.root, link} {
			var stat unix.Stat_t
			must(0, unix.Lstat(path, &stat))
			value := make([]byte, 10)
			n, _ := unix.Lgetxattr(path, "user.coven", value)
			all = append(all, fmt.Sprintf("%o %d %v %q", stat.Mode, stat.Uid, stat.Mtim, value[:max(n, 0)]))
		}
		return strings.Join(all, ", ")
	}
	for _, script := range []string{
		"chmod 777 " + file, "chmod 711 " + y.other, "chmod 711 " + y.root, "chmod 777 ../secret/../other/file", "chmod 777 /proc/self/root" + file,
		"touch -d 2001-01-01 " + file, "touch -d 2001-01-01 " + y.other, "touch -d 2001-01-01 " + y.root, "touch -h -d 2001-01-01 " + link,
		"exec 3<" + file + " && chmod 777 /proc/self/fd/3", "ln -s " + file + " soft && chmod 777 soft",
		"python3 -c 'import os; os.setxattr(\"" + file + "\", \"user.coven\", b\"x\")'", "chown 1:1 " + file,
	} {
		before := state()
		y.try(t, l, script)
		if after := state(); after != before {
			t.Errorf("%s: %s, before %s", script, after, before)
		}
		must(0, os.RemoveAll(y.write+"/soft"))
		cmd := exec.Command("sh", "-c", script)
		cmd.Dir = y.write
		if out, err := cmd.CombinedOutput(); err == nil && state() == before {
			t.Errorf("%s has no effect outside, either: %s", script, out)
		}
		_ = unix.Lremovexattr(file, "user.coven")
		must(0, os.RemoveAll(y.write+"/soft"))
		for path, mode := range map[string]os.FileMode{file: 0o600, y.other: 0o700, y.root: 0o700} {
			must(0, os.Chmod(path, mode))
			must(0, os.Lchown(path, os.Geteuid(), os.Getegid()))
		}
	}
	if out, code := y.try(t, l, "echo x >mine && chmod 711 mine . && touch -d 2001-01-01 mine . && chmod 700 ."); code != 0 {
		t.Errorf("the program's own files: exit code %d: %s", code, out)
	}
}

// within runs a script in the boundary, which prints a line and waits for one; in between it makes a change
// outside. It returns the output after the change.
func (y yard) within(t *testing.T, l *Launcher, b *Boundary, script string, change func()) string {
	t.Helper()
	child := start(t, l, Spec{Argv: shell(script), Dir: y.write, Boundary: b})
	readLine(t, child.Output())
	change()
	must(io.WriteString(child.Stdin(), "\n"))
	return readAll(t, child.Output())
}

// replace replaces a file as editors and logins do.
func replace(path, text string) {
	must(0, os.WriteFile(path+".new", []byte(text), 0o600))
	must(0, os.Rename(path+".new", path))
}

// Hidden paths that appear or are replaced while a program runs stay hidden.
func TestHiddenLater(t *testing.T) {
	y := newYard(t)
	b := y.boundary()
	for _, dir := range []string{"/config", "/real", "/config/gh"} {
		must(0, os.Mkdir(y.root+dir, 0o700))
	}
	must(0, os.WriteFile(y.root+"/real/netrc", []byte("hunter4\n"), 0o600))
	must(0, os.Symlink("real/netrc", y.root+"/netrc"))
	b.Hide = append(b.Hide, y.root+"/config/new/key", y.root+"/config/gh", y.root+"/netrc", "/coven-missing/key")
	out := y.within(t, launcher(t, PIDNamespace), b, "echo up; read x; cat ../missing ../token ../config/new/key ../config/gh/key ../netrc ../real/netrc ../secret/key ../plain/later", func() {
		replace(y.root+"/missing", "hunter5\n")
		replace(y.root+"/token", "hunter6\n")
		replace(y.root+"/real/netrc", "hunter7\n")
		must(0, os.Mkdir(y.root+"/config/new", 0o700))
		replace(y.root+"/config/new/key", "hunter8\n")
		must(0, os.Remove(y.root+"/config/gh"))
		must(0, os.Mkdir(y.root+"/config/gh", 0o700))
		replace(y.root+"/config/gh/key", "hunter9\n")
		must(0, os.RemoveAll(y.secret))
		must(0, os.Mkdir(y.secret, 0o700))
		replace(y.secret+"/key", "hunter10\n")
		replace(y.root+"/plain/later", "visible\n")
	})
	if strings.Contains(out, "hunter") || !strings.Contains(out, "visible") {
		t.Errorf("%s", out)
	}
}

// A program that runs long sees later files if it has to, and hidden ones stay hidden as long as they are not replaced.
func TestBoundaryLive(t *testing.T) {
	y := newYard(t)
	b := y.boundary()
	b.Live = true
	out := y.within(t, launcher(t, PIDNamespace), b, "echo up; read x; cat ../later ../token ../secret/key", func() { replace(y.root+"/later", "visible\n") })
	if strings.Contains(out, "hunter") || !strings.Contains(out, "visible") {
		t.Errorf("%s", out)
	}
}

// A directory with hidden paths otherwise looks the same: its attributes, links, sizes, and the writable
// directories in it.
func TestHiddenBesideIsVisible(t *testing.T) {
	y := newYard(t)
	must(0, unix.Mkfifo(y.root+"/pipe", 0o600))
	must(0, os.Symlink("nowhere", y.root+"/dangling"))
	must(0, os.Chmod(y.root, 0o751)) //nolint:gosec // an unusual mode
	const script = "stat -c '%n %F %a %u %g %h' ../plain ../plain/file ../pipe ../dangling ../link ../write ../other; stat -c '%F %a %u %g' ..; ls -A .. | cat; readlink ../dangling ../link; pwd -P"
	cmd := exec.Command("sh", "-c", script)
	cmd.Dir = y.write
	want := string(must(cmd.Output()))
	out, code := y.try(t, launcher(t, PIDNamespace), script)
	if got := strings.ReplaceAll(out, "\r", ""); code != 0 || got != want {
		t.Errorf("exit code %d:\n%s\nwant\n%s", code, got, want)
	}
}

// A program sees a login that another program replaces, if the login is a writable file.
func TestBoundaryLogin(t *testing.T) {
	y := newYard(t)
	b := y.boundary()
	login := y.secret + "/login"
	must(0, os.WriteFile(login, []byte("first\n"), 0o600))
	b.Write = append(b.Write, login)
	b.Hide = []string{y.secret + "/key", y.root + "/token", y.secret + "/later"}
	out := y.within(t, launcher(t, PIDNamespace), b, "echo second >>"+login+"; echo up; read x; cat "+login+" ../secret/key ../token", func() {
		if text := string(must(os.ReadFile(login))); text != "first\nsecond\n" {
			t.Errorf("the login is %q", text)
		}
		replace(login, "third\n")
	})
	if strings.Contains(out, "hunter") || !strings.Contains(out, "third") {
		t.Errorf("%s", out)
	}
}

// A program reaches no socket of its user, wherever it is, and whether it exists at the start or appears
// later, except those in Connect and its own.
func TestBoundarySockets(t *testing.T) {
	y := newYard(t)
	l := launcher(t, PIDNamespace)
	b := y.boundary()
	for _, dir := range []string{"/deep", "/deep/er", "/given", "/given/one", "/empty"} {
		must(0, os.Mkdir(y.root+dir, 0o700))
	}
	b.Connect = []string{y.root + "/given/one", y.root + "/single"}
	hear := func(path string) {
		listener := must(net.Listen("unix", path))
		t.Cleanup(func() { _ = listener.Close() })
	}
	outside := []string{y.root + "/top", y.root + "/deep/er/socket", y.write + "/server", y.root + "/given/other"}
	allowed := []string{y.root + "/given/one/socket", y.root + "/single"}
	for _, path := range slices.Concat(outside, allowed) {
		hear(path)
	}
	relative := start(t, launcher(t, Subreaper), Spec{Argv: []string{must(os.Executable()), "listen", "relative"}, Dir: y.root + "/plain"})
	readLine(t, relative.Output())
	outside = append(outside, y.root+"/plain/relative")
	later := []string{y.root + "/later", y.root + "/deep/er/later", y.root + "/given/later"}
	self := must(os.Executable())
	var script strings.Builder
	for _, path := range slices.Concat(outside, later, allowed) {
		fmt.Fprintf(&script, "%s dial %s; ", self, path)
	}
	out := y.within(t, l, b, "echo up; read x; "+script.String(), func() {
		for _, path := range later {
			hear(path)
		}
	})
	var got []string
	for line := range strings.Lines(out) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "dial:") {
			got = append(got, line)
		}
	}
	for i, path := range slices.Concat(outside, later, allowed) {
		if i >= len(got) {
			t.Fatalf("%q", out)
		}
		if reached := got[i] == "dial: <nil>"; reached != slices.Contains(allowed, path) {
			t.Errorf("%s: %s", path, got[i])
		}
		if connection, err := net.Dial("unix", path); err != nil {
			t.Errorf("from outside: %v", err)
		} else {
			must(0, connection.Close())
		}
	}
	if out, code := y.try(t, l, self+" listen own </dev/null"); code != 0 || !strings.Contains(out, "listening") {
		t.Errorf("a socket of the program: exit code %d: %s", code, out)
	}
}

// Files and sockets that come and go next to hidden ones do not prevent a program from starting.
func TestBoundaryChurn(t *testing.T) {
	y := newYard(t)
	l := launcher(t, PIDNamespace)
	over, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-over:
				return
			default:
			}
			for _, dir := range []string{y.root, y.write, y.root + "/gone"} {
				_ = os.Mkdir(dir, 0o700)
				listener := must(net.Listen("unix", dir+"/socket"))
				must(0, os.WriteFile(dir+"/file", nil, 0o600))
				must(0, os.Mkdir(dir+"/dir", 0o700))
				must(0, errors.Join(listener.Close(), os.Remove(dir+"/file"), os.Remove(dir+"/dir")))
			}
			must(0, os.Remove(y.root+"/gone"))
		}
	}()
	for range 50 {
		if out, code := y.try(t, l, "cat ../plain/file"); code != 0 || !strings.Contains(out, "public") {
			t.Errorf("exit code %d: %s", code, out)
		}
	}
	close(over)
	<-done
}

// The working directory of a command that inherits it is inside the view of the boundary, too.
func TestBoundaryWorkingDirectory(t *testing.T) {
	y := newYard(t)
	for dir, script := range map[string]string{
		y.write:  "echo x >new && test -e new && ! chmod 700 ../other",
		y.root:   "! grep hunter token secret/key && cat plain/file",
		y.secret: "! grep hunter key && ! grep hunter ../token && ! grep hunter /proc/self/cwd/key",
	} {
		cmd, release, err := launcher(t, PIDNamespace).CommandWithin(y.boundary(), shell(script)...)
		if err != nil {
			t.Fatal(err)
		}
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if release(); err != nil || strings.Contains(string(out), "hunter") {
			t.Errorf("in %s: %s: %v: %s", dir, script, err, out)
		}
	}
}

// A program cannot type into its user's tmux.
func TestBoundaryTmux(t *testing.T) {
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("this machine has no tmux")
	}
	y := newYard(t)
	socket := y.other + "/tmux"
	tmux := "SHELL=/bin/sh tmux -f /dev/null -S " + socket
	run := func(script string) string {
		out, _ := exec.Command("sh", "-c", script).CombinedOutput()
		return string(out)
	}
	if out := run(tmux + " new-session -d 'sh; sleep 1000'"); out != "" {
		t.Skipf("tmux does not run here: %s", out)
	}
	t.Cleanup(func() { run(tmux + " kill-server") })
	send := tmux + " send-keys 'echo typed >" + y.other + "/typed' Enter && echo sent"
	if out, _ := y.try(t, launcher(t, PIDNamespace), send); strings.Contains(out, "sent") {
		t.Errorf("the program typed: %s", out)
	}
	if out := run(send); out != "sent\n" {
		t.Errorf("from outside: %s", out)
	}
}

// A program has no access to the keyrings of its session and its user.
func TestBoundaryKeyrings(t *testing.T) {
	self := must(os.Executable())
	outside := string(must(exec.Command(self, "keyrings").Output()))
	if strings.Contains(outside, "not implemented") || strings.Contains(outside, "not permitted") {
		t.Skipf("this kernel has no keyrings, or refuses them: %s", outside)
	}
	fenced(t, func(t *testing.T, l *Launcher, y yard) {
		const refused = "function not implemented"
		if out, _ := y.try(t, l, self+" keyrings"); strings.TrimSpace(out) != strings.Join([]string{refused, refused, refused}, " ") {
			t.Errorf("%s; outside: %s", out, outside)
		}
	})
}

// Debuggers work on the program's own processes.
func TestBoundaryTraces(t *testing.T) {
	fenced(t, func(t *testing.T, l *Launcher, y yard) {
		if out, code := y.try(t, l, must(os.Executable())+" trace"); code != 0 || !strings.Contains(out, "stop signal: trace/breakpoint trap") {
			t.Errorf("exit code %d: %s", code, out)
		}
	})
}
