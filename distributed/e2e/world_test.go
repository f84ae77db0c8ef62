package e2e_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coven-run/coven/distributed/server/servertest"
)

// A world has a server, an origin, a model and a desk. All of it is below one directory.
type world struct {
	*testing.T
	root   string
	server *servertest.Server
	origin *exec.Cmd // git daemon; nil while it is away
	port   int       // of the origin
	api    string    // URL of the model
	env    []string
	desk   *place
	asked  int // of the turns of the model, before a machine was lost
}

// A place is a person's or a machine's clone, with a home of its own.
type place struct {
	*world
	name, dir string
	env       []string
}

// A command is a program that runs at a place.
type command struct {
	*place
	text  string
	cmd   *exec.Cmd
	out   *output
	ended chan struct{}
}

// output is the output of a running command.
type output struct{ file string }

func (o output) String() string {
	text, _ := os.ReadFile(o.file)
	return string(text)
}

// patience limits the time for each thing that must happen. It is far above the normal time.
const patience = 3 * time.Minute

// newWorld returns a world whose first commit has the files, by path. The model plays a scenario.
func newWorld(t *testing.T, scenario string, files map[string]string) *world {
	t.Helper()
	server := servertest.Use(t)
	w := &world{T: t, root: t.TempDir(), server: server}
	t.Cleanup(w.end)
	w.env = []string{
		"PATH=" + bin + ":" + os.Getenv("PATH"), "LANG=C.UTF-8", "TERM=dumb", "USER=ann", "GIT_CONFIG_NOSYSTEM=1", "COVEN_WORKER_HEARTBEAT=" + heartbeat.String(),
		"GIT_AUTHOR_NAME=Ann", "GIT_AUTHOR_EMAIL=ann@example.invalid", "GIT_COMMITTER_NAME=Ann", "GIT_COMMITTER_EMAIL=ann@example.invalid",
		"ANTHROPIC_API_KEY=dummy", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
	}
	w.serveModel(scenario)
	w.env = append(w.env, "ANTHROPIC_BASE_URL="+w.api)
	bare := filepath.Join(w.root, "git", "acme", "shop.git")
	w.must(os.MkdirAll(filepath.Dir(bare), 0o755))
	w.git(w.root, "init", "-q", "--bare", "-b", "main", bare)
	w.git(bare, "config", "receive.autogc", "false")
	w.port = freePort(t)
	w.startOrigin()
	w.desk = w.newPlace("desk")
	for path, text := range files {
		path = filepath.Join(w.desk.dir, path)
		w.must(os.MkdirAll(filepath.Dir(path), 0o755))
		w.must(os.WriteFile(path, []byte(text), 0o644))
	}
	w.git(w.desk.dir, "add", "-f", ".")
	w.git(w.desk.dir, "commit", "-qm", "base")
	w.git(w.desk.dir, "push", "-q", "-u", "origin", "HEAD:main")
	w.desk.coven("config", "set", "--user", "run.on", server.Address()).wait(0)
	return w
}

// heartbeat is the time after which a silent machine is lost.
const heartbeat = 6 * time.Second

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// eventually waits until a condition holds.
func (w *world) eventually(what string, holds func() bool) {
	w.Helper()
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	for late := time.After(patience); !holds(); {
		select {
		case <-look.C:
		case <-late:
			w.Fatalf("it never happened: %s\n%s", what, w.logs())
		}
	}
}

// logs returns the ends of all output, for failed tests.
func (w *world) logs() string {
	var text strings.Builder
	files, _ := filepath.Glob(filepath.Join(w.root, "*.log"))
	for _, file := range files {
		log, _ := os.ReadFile(file)
		fmt.Fprintf(&text, "--- %s\n%s\n", filepath.Base(file), log[max(0, len(log)-4000):])
	}
	return text.String()
}

// git runs git and returns its output.
func (w *world) git(dir string, args ...string) string {
	w.Helper()
	cmd := exec.CommandContext(w.Context(), "git", args...)
	cmd.Dir, cmd.Env = dir, append(slices.Clone(w.env), "HOME="+w.root)
	out, err := cmd.CombinedOutput()
	if err != nil {
		w.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// bare runs git in the origin.
func (w *world) bare(args ...string) string {
	w.Helper()
	return w.git(filepath.Join(w.root, "git", "acme", "shop.git"), args...)
}

// live returns the refs of the sessions that the origin keeps.
func (w *world) live() string {
	w.Helper()
	return w.bare("for-each-ref", "--format=%(refname)", "refs/coven/live")
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // nothing was written
	return l.Addr().(*net.TCPAddr).Port
}

// startOrigin starts the git daemon.
func (w *world) startOrigin() {
	w.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(w.Context()), "git", "daemon", "--reuseaddr", "--listen=127.0.0.1", "--port="+strconv.Itoa(w.port), "--base-path="+filepath.Join(w.root, "git"), "--export-all", "--enable=receive-pack")
	cmd.Env, cmd.SysProcAttr = append(slices.Clone(w.env), "HOME="+w.root), &syscall.SysProcAttr{Setpgid: true}
	w.must(cmd.Start())
	w.origin = cmd
	w.eventually("the origin answers", func() bool {
		c, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(w.port)))
		return err == nil && c.Close() == nil
	})
}

// stopOrigin stops the git daemon and all transfers.
func (w *world) stopOrigin() {
	if w.origin != nil {
		_ = syscall.Kill(-w.origin.Process.Pid, syscall.SIGKILL)
		_ = w.origin.Wait()
		w.origin = nil
	}
}

// serveModel starts the model.
func (w *world) serveModel(scenario string) {
	w.Helper()
	file := filepath.Join(w.root, "scenario.yaml")
	w.must(os.WriteFile(file, []byte(scenario), 0o644))
	cmd := exec.CommandContext(context.WithoutCancel(w.Context()), filepath.Join(bin, "serve"), file)
	cmd.Stderr = os.Stderr
	input, err := cmd.StdinPipe()
	w.must(err)
	text, err := cmd.StdoutPipe()
	w.must(err)
	w.must(cmd.Start())
	w.Cleanup(func() {
		_ = input.Close()
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(text).ReadString('\n')
	w.must(err)
	w.api = strings.TrimSpace(line)
}

// ask calls an endpoint of the model's control.
func (w *world) ask(method, path string, status int) string {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, w.api+"/_control/"+path, http.NoBody)
	w.must(err)
	reply, err := http.DefaultClient.Do(request)
	w.must(err)
	defer reply.Body.Close() //nolint:errcheck // it was read
	text, err := io.ReadAll(io.LimitReader(reply.Body, 64<<20))
	if err != nil || reply.StatusCode != status {
		w.Fatalf("%s: %d, %v: %s\n%s", path, reply.StatusCode, err, text, w.logs())
	}
	return string(text)
}

// held waits until an answer of the model is held.
func (w *world) held(name string) {
	w.Helper()
	w.ask(http.MethodGet, "held?timeout="+patience.String()+"&name="+url.QueryEscape(name), http.StatusNoContent)
}

// release lets the model give an answer, now and later.
func (w *world) release(name string) {
	w.Helper()
	w.ask(http.MethodPost, "release?name="+url.QueryEscape(name), http.StatusNoContent)
}

// newPlace clones the origin.
func (w *world) newPlace(name string) *place {
	w.Helper()
	p := &place{world: w, name: name, dir: filepath.Join(w.root, name, "clone")}
	home := filepath.Join(w.root, name, "home")
	runtime := filepath.Join(w.root, name, "run")
	w.must(errors.Join(os.MkdirAll(home, 0o755), os.MkdirAll(runtime, 0o700)))
	p.env = append(slices.Clone(w.env), "HOME="+home, "TMPDIR="+filepath.Join(w.root, name), "XDG_RUNTIME_DIR="+runtime)
	w.git(w.root, "clone", "-q", fmt.Sprintf("git://127.0.0.1:%d/acme/shop.git", w.port), p.dir)
	return p
}

// start starts a program. Its output goes to a file.
func (p *place) start(args ...string) *command {
	p.Helper()
	file, err := os.CreateTemp(p.root, p.name+"-*.log")
	p.must(err)
	defer file.Close() //nolint:errcheck // the command has it
	cmd := exec.CommandContext(context.WithoutCancel(p.Context()), args[0], args[1:]...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = p.dir, p.env, file, file, &syscall.SysProcAttr{Setpgid: true}
	fmt.Fprintf(file, "$ %s\n", strings.Join(args, " ")) //nolint:errcheck // for people
	p.must(cmd.Start())
	c := &command{place: p, text: strings.Join(args, " "), cmd: cmd, out: &output{file.Name()}, ended: make(chan struct{})}
	go func() {
		_ = cmd.Wait()
		close(c.ended)
	}()
	return c
}

// coven starts coven.
func (p *place) coven(args ...string) *command {
	p.Helper()
	return p.start(append([]string{filepath.Join(bin, "coven")}, args...)...)
}

// worker starts coven-worker, and returns when it serves.
func (p *place) worker(args ...string) *command {
	p.Helper()
	c := p.start(append([]string{filepath.Join(bin, "coven-worker"), "--on", p.server.Address(), "--name", p.name}, args...)...)
	c.says(" serves 127.0.0.1/acme/shop.git on ")
	return c
}

// wait waits until a command has ended with an exit code, and returns its output.
func (c *command) wait(code int) string {
	c.Helper()
	select {
	case <-c.ended:
	case <-time.After(patience):
		c.Fatalf("%s goes on\n%s", c.text, c.logs())
	}
	if got := c.cmd.ProcessState.ExitCode(); got != code {
		c.Fatalf("%s: exit code %d, want %d\n%s", c.text, got, code, c.logs())
	}
	return c.out.String()
}

// says waits until the output of a command matches.
func (c *command) says(pattern string) {
	c.Helper()
	re := regexp.MustCompile(pattern)
	c.eventually(c.text+" says "+pattern, func() bool { return re.MatchString(c.out.String()) })
}

// signal sends a signal to the program itself.
func (c *command) signal(s syscall.Signal) { _ = c.cmd.Process.Signal(s) }

// destroy kills a machine: the program and all that it has started, and its disk.
func (c *command) destroy() {
	c.Helper()
	killBelow(filepath.Join(c.root, c.name) + "/")
	<-c.ended
	c.must(os.RemoveAll(filepath.Join(c.root, c.name)))
}

// end ends all that is left.
func (w *world) end() {
	if w.Failed() {
		w.Log(w.logs())
	}
	w.stopOrigin()
	killBelow(w.root + "/")
}

// killBelow kills all processes whose home is below a directory.
func killBelow(dir string) {
	for found := true; found; {
		found = false
		files, _ := filepath.Glob("/proc/[0-9]*/environ")
		for _, file := range files {
			text, err := os.ReadFile(file)
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			if err != nil || pid == os.Getpid() || !bytes.Contains(text, []byte("HOME="+dir)) {
				continue
			}
			if syscall.Kill(pid, syscall.SIGKILL) == nil {
				found = true
			}
		}
	}
}

// tells reports whether a text matches a pattern.
func tells(text, pattern string) bool { return regexp.MustCompile(pattern).MatchString(text) }

// contains fails unless a text contains others.
func (w *world) contains(text string, others ...string) {
	w.Helper()
	for _, other := range others {
		if !strings.Contains(text, other) {
			w.Errorf("%q is not in:\n%s", other, text)
		}
	}
}
