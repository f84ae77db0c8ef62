//go:build linux

package process

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// yard contains a directory that a program may write, a directory that it may not write,
// and a hidden directory.
type yard struct{ root, write, other, secret string }

func newYard(t *testing.T) yard {
	t.Helper()
	// Ask the kernel directly, so that a bug in landlockABI cannot skip the tests.
	version, _, _ := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if abi := max(0, int(version)); abi != landlockABI() {
		t.Fatalf("Landlock's version is %d, coven sees %d", abi, landlockABI())
	} else if abi == 0 {
		t.Skip("this kernel has no Landlock")
	}
	root := must(filepath.EvalSymlinks(t.TempDir()))
	y := yard{root: root, write: root + "/write", other: root + "/other", secret: root + "/secret"}
	for _, dir := range []string{y.write, y.other, y.secret, root + "/plain"} {
		must(0, os.Mkdir(dir, 0o700))
	}
	must(0, os.WriteFile(y.other+"/file", []byte("kept\n"), 0o600))
	must(0, os.WriteFile(y.secret+"/key", []byte("hunter2\n"), 0o600))
	must(0, os.WriteFile(root+"/token", []byte("hunter3\n"), 0o600))
	must(0, os.WriteFile(root+"/plain/file", []byte("public\n"), 0o600))
	must(0, os.Symlink(y.secret, root+"/link"))
	return y
}

func (y yard) boundary() *Boundary {
	return &Boundary{Write: []string{y.write}, Hide: []string{y.secret, y.root + "/token", y.root + "/link", y.root + "/missing"}}
}

// try runs a script inside the boundary and returns its output.
func (y yard) try(t *testing.T, l *Launcher, script string) (output string, code int) {
	t.Helper()
	exit, out, err := l.Run(t.Context(), Spec{
		Argv: shell(script), Dir: y.write, Env: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + y.write, "LC_ALL=C"}, Boundary: y.boundary(),
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(out), exit.Code
}

// fenced runs a test under both containments that hold the whole tree.
func fenced(t *testing.T, test func(t *testing.T, l *Launcher, y yard)) {
	t.Helper()
	for _, containment := range []Containment{PIDNamespace, Subreaper} {
		t.Run(containment.String(), func(t *testing.T) {
			t.Parallel()
			test(t, launcher(t, containment), newYard(t))
		})
	}
}

// Of a partial directory, a program can read only the shown paths and those that it may change, also through links, and
// also if it contains hidden paths.
func TestBoundaryPartial(t *testing.T) {
	fenced(t, func(t *testing.T, l *Launcher, y yard) {
		home := y.root + "/home"
		for name, text := range map[string]string{
			"src/code": "tracked", "deps/lib": "shown", "deps-b/lib": "tracked", "deps/key": "secret", "a/deps/lib": "shown", "a/code": "tracked", "file": "shown", "work/T/code": "own", "work/U/code": "other",
		} {
			must(0, errors.Join(os.MkdirAll(filepath.Dir(home+"/"+name), 0o700), os.WriteFile(home+"/"+name, []byte(text+"\n"), 0o600)))
		}
		must(0, errors.Join(os.Symlink("../src", home+"/deps/link"), os.Symlink("home", y.root+"/alias")))
		b := y.boundary()
		b.Write, b.Hide = append(b.Write, home+"/work/T"), append(b.Hide, home+"/deps/key", home+"/src/missing")
		b.Partial = map[string][]string{y.root + "/alias": {home + "/deps", home + "/deps/lib", y.root + "/alias/a/deps", home + "/file", home + "/missing", y.root + "/plain"}, y.root + "/nowhere": nil}
		for script, want := range map[string]string{
			"cat deps/lib a/deps/lib file work/T/code":                                                         "shown\nshown\nshown\nown\n",
			"cat src/code a/code work/U/code deps-b/lib deps/key deps/link/code " + y.root + "/alias/src/code": "",
			"echo new >work/T/new && cat work/T/new":                                                           "new\n",
			"echo new >deps/new; echo new >new; echo new >a/new; mkdir src/d; rm file":                         "",
			"cat ../plain/file": "public\n",
		} {
			exit, out, err := l.Run(t.Context(), Spec{
				Argv: shell("exec 2>/dev/null; " + script), Dir: home, Env: []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C"}, Boundary: b,
			})
			if err != nil || string(out) != want {
				t.Errorf("%s: %q, %v, %v, want %q", script, out, exit, err, want)
			}
		}
		if l.Enforcement().Covers {
			_, out, _ := l.Run(t.Context(), Spec{Argv: shell("find . | sort"), Dir: home, Env: []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C"}, Boundary: b})
			if got := strings.Join(strings.Fields(string(out)), " "); got != ". ./a ./a/deps ./a/deps/lib ./deps ./deps/key ./deps/lib ./deps/link ./file ./work ./work/T ./work/T/code ./work/T/new" {
				t.Errorf("visible: %s", got)
			}
		}
		for _, name := range []string{"deps/new", "new", "a/new", "src/d"} {
			if _, err := os.Lstat(home + "/" + name); err == nil {
				t.Errorf("%s was created", name)
			}
		}
	})
}

// With mounts, a linked directory shows another one, which cannot be changed there unless it can be changed elsewhere, and in
// which hidden files are hidden.
func TestBoundaryLink(t *testing.T) {
	fenced(t, func(t *testing.T, l *Launcher, y yard) {
		for _, dir := range []string{"deps", "shared"} {
			must(0, errors.Join(os.MkdirAll(y.root+"/"+dir, 0o700), os.WriteFile(y.root+"/"+dir+"/lib", []byte(dir+"\n"), 0o600), os.WriteFile(y.root+"/"+dir+"/key", []byte("secret\n"), 0o600)))
		}
		must(0, errors.Join(os.Mkdir(y.write+"/a", 0o700), os.Mkdir(y.write+"/b", 0o700), os.Symlink("b", y.write+"/c"), os.Symlink("deps", y.root+"/alias")))
		b := y.boundary()
		b.Write, b.Hide = append(b.Write, y.root+"/shared"), append(b.Hide, y.root+"/deps/key")
		b.Link = map[string]string{y.write + "/a": y.root + "/alias", y.write + "/b": y.root + "/shared", y.write + "/c": y.root + "/deps", y.write + "/missing": y.root + "/deps", y.root + "/nowhere": y.root}
		if !l.Enforcement().Covers {
			return
		}
		_, out, err := l.Run(t.Context(), Spec{
			Argv: shell("exec 2>/dev/null; cat a/lib a/key b/lib c/lib; echo x >a/new || echo refused; rm -rf a || echo kept; touch a/lib || echo kept; echo x >b/new && echo changed; ls -1 a"),
			Dir:  y.write, Env: []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C"}, Boundary: b,
		})
		if want := "deps\nshared\nshared\nrefused\nkept\nkept\nchanged\nkey\nlib\n"; err != nil || string(out) != want {
			t.Errorf("%q, %v, want %q", out, err, want)
		}
		if text, err := os.ReadFile(y.root + "/shared/new"); err != nil || string(text) != "x\n" {
			t.Errorf("%q, %v", text, err)
		}
		if entries := must(os.ReadDir(y.write + "/a")); len(entries) > 0 {
			t.Errorf("%v", entries)
		}
	})
}

// With mounts, a directory replaces /dev/shm, which is invisible.
func TestBoundaryShm(t *testing.T) {
	if _, err := os.Stat(sharedMemory); err != nil {
		t.Skip("this machine has no /dev/shm")
	}
	outside := must(os.CreateTemp(sharedMemory, "coven-test-"))
	t.Cleanup(func() { _, _ = outside.Close(), os.Remove(outside.Name()) })
	fenced(t, func(t *testing.T, l *Launcher, y yard) {
		b := y.boundary()
		b.Shm = y.write + "/shm"
		must(0, os.Mkdir(b.Shm, 0o700))
		mine := outside.Name() + "-" + l.Containment().String()
		t.Cleanup(func() { _, _ = os.Remove(mine), os.Remove(mine+"-also") }) // in case they escaped
		exit, out, err := l.Run(t.Context(), Spec{
			Argv: shell(fmt.Sprintf("ls /dev/shm; echo x > %[1]s && ln %[1]s %[1]s-also && cat shm/%[2]s-also", mine, filepath.Base(mine))),
			Dir:  y.write, Env: []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C"}, Boundary: b,
		})
		if err != nil {
			t.Fatal(err)
		}
		switch covers := l.Enforcement().Covers; {
		case covers && (exit.Code != 0 || string(out) != "x\n"):
			t.Errorf("a private /dev/shm: %q, exit code %d", out, exit.Code)
		case !covers && (exit.Code == 0 || !strings.Contains(string(out), filepath.Base(outside.Name()))):
			t.Errorf("the machine's /dev/shm was changed: %q, exit code %d", out, exit.Code)
		}
		if _, err := os.Stat(mine); err == nil {
			t.Error("a file in the machine's /dev/shm")
		}
	})
}

// A program has its own terminals and its output, but no access to its user's terminals.
func TestBoundaryTerminals(t *testing.T) {
	master := must(os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0))
	t.Cleanup(func() { _ = master.Close() })
	must(0, unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0))
	users := fmt.Sprintf("/dev/pts/%d", must(unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)))
	y := newYard(t)
	l := launcher(t, PIDNamespace)
	for script, want := range map[string]string{
		"echo x >" + users + " && echo reached":            "",
		"exec 3<" + users + " && echo reached":             "",
		"echo out >/dev/stdout; echo err >/dev/stderr":     "out\r\nerr\r\n",
		"script -qec 'test -t 0 && echo inside' /dev/null": "inside",
		"ls /dev/pts": "ptmx\r\n",
	} {
		out, _ := y.try(t, l, script+" 2>/dev/null")
		if strings.Contains(script, "script") && exec.Command("script", "--version").Run() != nil {
			continue
		}
		if want == "" && strings.Contains(out, "reached") || !strings.Contains(strings.ReplaceAll(out, "\r", ""), strings.ReplaceAll(want, "\r", "")) {
			t.Errorf("%s: %q, want %q", script, out, want)
		}
	}
}

// A program has its own System V shared memory, which has no path.
func TestBoundarySystemV(t *testing.T) {
	y := newYard(t)
	own := must(os.Readlink("/proc/self/ns/ipc"))
	if out, code := y.try(t, launcher(t, PIDNamespace), "readlink /proc/self/ns/ipc"); code != 0 || strings.TrimSpace(out) == own {
		t.Errorf("%q, exit code %d: the same as outside", out, code)
	}
}

// Within its writable directories, a program works as without a boundary, and so do
// the basic devices.
func TestBoundaryAllows(t *testing.T) {
	fenced(t, func(t *testing.T, l *Launcher, y yard) {
		for _, script := range []string{
			"echo a >new && echo b >>new && cat new && rm new",
			"mkdir -p a/b && echo x >a/f && mv a/f a/b/g && ln a/b/g hard && ln -s a soft && rm -r a soft hard",
			"mkfifo pipe && rm pipe",
			": >long && truncate -s 10 long && chmod 700 long && rm long",
			"echo x >/dev/null && head -c 1 /dev/zero >/dev/null && head -c 1 /dev/urandom >/dev/null",
			"cat ../other/file ../plain/file /etc/passwd >/dev/null && ls / /proc >/dev/null",
			"git init -q . && git -c user.name=x -c user.email=x@x commit -q --allow-empty -m x && git status --short",
			"sleep 100 & kill $! && ! wait $!",
		} {
			if out, code := y.try(t, l, script); code != 0 {
				t.Errorf("%s\nexit code %d: %s", script, code, out)
			}
		}
	})
}

// A program cannot change anything outside of its writable directories.
func TestBoundaryRefuses(t *testing.T) {
	fenced(t, func(t *testing.T, l *Launcher, y yard) {
		for _, script := range []string{
			"echo bad >../other/file", "echo bad >>" + y.other + "/file", "echo bad >../other/new", "rm ../other/file", "mkdir ../other/dir",
			"rmdir ../plain", "mv ../other/file here", "mv /etc/hostname here", "ln ../other/file hard && echo bad >hard",
			"ln -s ../other out && echo bad >out/file", "touch mine && mv mine ../other/mine", "touch mine && ln mine ../other/mine",
			"truncate -s 0 ../other/file", "mkfifo ../other/pipe", "ln -s x ../other/link", "echo bad >/proc/self/root" + y.other + "/file",
			"cd / && echo bad >" + y.other + "/new", "echo bad >../new", "mv ../write ../moved", "echo bad >/tmp/coven-boundary-$$", "echo bad >$HOME/../other/file",
			"mount -t tmpfs x ../other", "unshare -rm sh -c 'mount --bind . ../other && echo bad >../other/file'", "umount " + y.secret,
			"mknod disk b 8 0", "mknod mem c 1 1", "mknod ../other/null c 1 3", "echo 0 >/proc/sys/kernel/core_pattern", "dd if=/dev/zero of=../other/file count=1",
		} {
			if out, code := y.try(t, l, script); code == 0 {
				t.Errorf("%s: succeeded: %s", script, out)
			}
			y.unchanged(t, script)
			if err := errors.Join(os.RemoveAll(y.write), os.Mkdir(y.write, 0o700)); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// unchanged fails the test if anything outside of the writable directories has changed.
func (y yard) unchanged(t *testing.T, after string) {
	t.Helper()
	var found []string
	err := filepath.WalkDir(y.root, func(path string, entry os.DirEntry, err error) error {
		if path == y.write {
			return filepath.SkipDir
		}
		text := strings.TrimPrefix(path, y.root)
		if err == nil && entry.Type().IsRegular() {
			text += "=" + string(must(os.ReadFile(path)))
		}
		found = append(found, text)
		return err
	})
	want := " /link /other /other/file=kept\n /plain /plain/file=public\n /secret /secret/key=hunter2\n /token=hunter3\n"
	if got := strings.Join(found, " "); err != nil || got != want {
		t.Fatalf("after %s: %v: %q, want %q", after, err, got, want)
	}
}

// Hidden files cannot be read under any name.
func TestBoundaryHides(t *testing.T) {
	fenced(t, func(t *testing.T, l *Launcher, y yard) {
		for _, path := range []string{"../secret/key", "../link/key", y.secret + "/key", "../token", "/proc/self/root" + y.root + "/token", "../plain/../secret/key"} {
			for _, script := range []string{"cat %[1]s", "cp %[1]s copy && cat copy", "ln %[1]s hard && cat hard", "mv %[1]s moved && cat moved", "ln -s $PWD/%[1]s soft && cat soft", "tail -c 9 <%[1]s"} {
				script = fmt.Sprintf(script, path)
				if out, _ := y.try(t, l, script); strings.Contains(out, "hunter") {
					t.Errorf("%s: %s", script, out)
				}
				y.unchanged(t, script)
			}
		}
		if out, code := y.try(t, l, "cat ../plain/file ../other/file"); code != 0 || out != "public\nkept\n" {
			t.Errorf("beside what is hidden: exit code %d: %q", code, out)
		}
	})
}

// With a mount namespace, hidden directories and files look empty and remain usable.
func TestHiddenLooksEmpty(t *testing.T) {
	y := newYard(t)
	l := launcher(t, PIDNamespace)
	b := y.boundary()
	b.Write = []string{"/"}
	if out := y.within(t, l, b, "echo up; read x; cat ../token ../secret/key; echo bad >../token; echo bad >../secret/new; ls -A ../secret", func() {}); strings.Contains(out, "hunter") || strings.Contains(out, "\nnew") {
		t.Errorf("if everything else is writable: %q", out)
	}
	y.unchanged(t, "attempts to change hidden files")
	if out, code := y.try(t, l, "ls -A ../secret; wc -c <../token; ls -A ../link/"); code != 0 || strings.TrimSpace(out) != "0" {
		t.Errorf("exit code %d: %q", code, out)
	}
	if out, code := y.try(t, l, "grep -c hunter /proc/self/mountinfo; ls /proc/file /proc/dir"); code == 0 {
		t.Errorf("the source of the covers is visible: %s", out)
	}
}

// From Landlock ABI 6, a program can reach no process and no abstract socket outside, and can
// trace no process.
func TestBoundaryScopes(t *testing.T) {
	if landlockABI() < 6 {
		t.Skip("this kernel's Landlock does not scope signals and abstract sockets")
	}
	fenced(t, func(t *testing.T, l *Launcher, y yard) {
		name := "@coven-boundary-" + filepath.Base(filepath.Dir(y.root)) + strings.ReplaceAll(t.Name(), "/", "-")
		listener := must(net.Listen("unix", name))
		t.Cleanup(func() { must(0, listener.Close()) })
		if out, code := y.try(t, l, must(os.Executable())+" dial "+name); code != 0 || !strings.Contains(out, "operation not permitted") {
			t.Errorf("an abstract socket outside: exit code %d, %s", code, out)
		}
		if l.Containment() == PIDNamespace {
			return // processes outside have no number here
		}
		victim := start(t, launcher(t, Subreaper), Spec{Argv: shell("echo up; read x")})
		readLine(t, victim.Output())
		pid := childrenOf(childrenOf(victim.process.Pid)[0])[0]
		if out, code := y.try(t, l, fmt.Sprintf("kill -0 %[1]d || kill -9 %[1]d || cat /proc/%[1]d/environ", pid)); code == 0 {
			t.Errorf("the program reached process %d outside: %s", pid, out)
		}
		if err := syscall.Kill(pid, 0); err != nil {
			t.Errorf("the process outside is gone: %v", err)
		}
	})
}

// From ABI 9, a program may connect to the existing sockets in Connect.
func TestBoundaryConnects(t *testing.T) {
	dir := t.TempDir()
	l := must((&Boundary{Write: []string{dir}, Connect: []string{dir, dir + "/missing"}}).limits(mode{containment: PIDNamespace}))
	rules, err := l.rules(ll.AccessFSResolveUnix)
	if err != nil || len(rules) != 1 {
		t.Errorf("%v, %v", rules, err)
	}
}

// A program of root has no capability that leads around the boundary, and cannot gain one.
func TestBoundaryDropsCapabilities(t *testing.T) {
	var allowed uint64
	for _, one := range kept() {
		allowed |= 1 << one
	}
	for _, one := range []int{unix.CAP_NET_RAW, unix.CAP_SYS_ADMIN, unix.CAP_SYS_PTRACE, unix.CAP_MKNOD, unix.CAP_DAC_READ_SEARCH} {
		if allowed&(1<<one) != 0 {
			t.Errorf("capability %d is kept", one)
		}
	}
	fenced(t, func(t *testing.T, l *Launcher, y yard) {
		out, _ := y.try(t, l, "sed -n 's/^Cap\\(Inh\\|Prm\\|Eff\\|Amb\\):\t*//p' /proc/self/status; sed -n 's/^NoNewPrivs:\t*//p' /proc/self/status")
		lines := strings.Fields(out)
		if len(lines) != 5 || lines[4] != "1" {
			t.Fatalf("%q", out)
		}
		for _, line := range lines[:4] {
			if held := must(strconv.ParseUint(line, 16, 64)); held&^allowed != 0 {
				t.Errorf("capabilities %x, of which only %x may be kept", held, allowed)
			}
		}
	})
}

// If a boundary cannot be enforced, Start fails and nothing runs.
func TestBoundaryErrors(t *testing.T) {
	y := newYard(t)
	l := launcher(t, 0)
	for text, b := range map[string]*Boundary{
		"not an absolute path": {Write: []string{"relative"}},
		"no such file":         {Write: []string{y.root + "/missing"}},
	} {
		_, err := l.Start(t.Context(), Spec{Argv: shell("echo ran >ran"), Dir: y.root, Boundary: b})
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%v, want %q", err, text)
		}
	}
	y.unchanged(t, "refused boundaries")
	if _, err := configOf(0); !errors.Is(err, ErrNoBoundary) {
		t.Errorf("without Landlock: %v", err)
	}
	for abi := 1; abi < 13; abi++ {
		config, err := configOf(abi)
		if err != nil || config.HandledAccessNet != 0 || (config.HandledAccessFS&writing == 0) {
			t.Errorf("ABI %d: %v %v", abi, config, err)
		}
	}
}

// The boundary of an ordinary user is the same as that of root.
func TestBoundaryOfUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("the other tests run as an ordinary user")
	}
	newYard(t)
	dir := must(os.MkdirTemp("", "yard"))
	t.Cleanup(func() { must(0, os.RemoveAll(dir)) })
	must(0, os.Chmod(dir, 0o777))                                           //nolint:gosec // for the other user
	self := filepath.Join(dir, "test")                                      // the other user cannot access the original
	must(0, os.WriteFile(self, must(os.ReadFile("/proc/self/exe")), 0o755)) //nolint:gosec // for the other user
	cmd := exec.Command(self, "-test.run", "^(TestBoundary|TestHidden)")
	cmd.Env, cmd.Dir = []string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + dir}, "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "PASS") {
		t.Errorf("%v: %s", err, out)
	}
}

// With mounts, a program sees other contents of a file, which it can neither change nor remove.
func TestBoundaryReplace(t *testing.T) {
	fenced(t, func(t *testing.T, l *Launcher, y yard) {
		file := y.write + "/file"
		must(0, os.WriteFile(file, []byte("outside\n"), 0o600))
		b := y.boundary()
		b.Replace = map[string]string{file: "inside\n", y.write + "/missing": "x"}
		exit, out, err := l.Run(t.Context(), Spec{
			Argv: shell("cat file; (echo more >>file; rm -f file; mv file moved; mv other file; ln file linked; umount file) 2>/dev/null; cat file; ls"),
			Dir:  y.write, Env: []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C"}, Boundary: b,
		})
		if err != nil || exit.Code != 0 && l.Enforcement().Covers {
			t.Fatal(exit, err)
		}
		if text := strings.ReplaceAll(string(out), "\r", ""); l.Enforcement().Covers && text != "inside\ninside\nfile\n" {
			t.Errorf("the program saw %q", text)
		} else if !l.Enforcement().Covers {
			return
		}
		if text := must(os.ReadFile(file)); string(text) != "outside\n" {
			t.Errorf("the file outside is %q", text)
		}
	})
}
