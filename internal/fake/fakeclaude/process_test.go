package fakeclaude_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/term"

	"github.com/coven-run/coven/internal/fake/fakeapi"
)

// patience limits every wait. It is far longer than any wait that succeeds.
const patience = 60 * time.Second

// cli is one of the two programs that must behave alike.
type cli struct{ name, path string }

// fakeCLI returns this test binary under the name claude.
func fakeCLI(t *testing.T) cli {
	t.Helper()
	self, err := os.Executable()
	check(t, err)
	link := filepath.Join(t.TempDir(), "claude")
	check(t, os.Symlink(self, link))
	return cli{"fake", link}
}

// realCLI returns the real CLI or skips the test with the reason.
func realCLI(t *testing.T) cli {
	t.Helper()
	path := os.Getenv("COVEN_REAL_CLAUDE")
	if path == "" {
		path, _ = exec.LookPath("claude")
	}
	if path == "" && os.Getenv("COVEN_REQUIRE_REAL_CLAUDE") == "1" {
		t.Fatal("no real claude: neither COVEN_REAL_CLAUDE nor claude on PATH")
	}
	if path == "" {
		t.Skip("the real claude is not installed (COVEN_REAL_CLAUDE, PATH): only the fake was compared with the recorded behavior")
	}
	return cli{"real", path}
}

// world is the environment of one case: a home, a working directory, an API.
type world struct {
	t                        *testing.T
	cli                      cli
	home, cwd, log, temp, id string
	api                      *fakeapi.Server
	deadServer, lateServer   bool
}

func newWorld(t *testing.T, cli cli, scenario string) *world {
	t.Helper()
	parsed, err := fakeapi.Parse([]byte(scenario))
	check(t, err)
	api, err := fakeapi.New(parsed)
	check(t, err)
	t.Cleanup(func() { check(t, api.Close()) })
	root, err := filepath.EvalSymlinks(scratch(t))
	check(t, err)
	w := &world{
		t: t, cli: cli, api: api, id: "11111111-1111-4111-8111-111111111111", log: filepath.Join(root, "asked.jsonl"),
		home: filepath.Join(root, "home"), cwd: filepath.Join(root, "work"), temp: filepath.Join(root, "tmp"),
	}
	for _, dir := range []string{w.home, w.cwd, w.temp} {
		check(t, os.Mkdir(dir, 0o700))
	}
	return w
}

// scratch is t.TempDir for the real CLI. Short-lived children of the CLI can still
// write into its home after its end, so the cleanup retries the removal.
func scratch(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "fakeclaude-")
	check(t, err)
	t.Cleanup(func() { eventually(t, func() bool { return os.RemoveAll(dir) == nil }) })
	return dir
}

func (w *world) write(name, content string) {
	w.t.Helper()
	check(w.t, os.WriteFile(filepath.Join(w.cwd, name), []byte(content), 0o600))
}

// env returns the whole environment of the CLI.
func (w *world) env(more ...string) []string {
	return append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + w.home, "TMPDIR=" + w.temp, "CLAUDE_CODE_TMPDIR=" + w.temp, "TERM=dumb", "GORACE=atexit_sleep_ms=10",
		"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1",
		"ANTHROPIC_BASE_URL=" + w.api.URL, "ANTHROPIC_API_KEY=dummy", "IS_SANDBOX=1",
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1", "DISABLE_TELEMETRY=1",
	}, more...)
}

// flags returns the flags that coven passes.
func (w *world) flags() []string {
	w.t.Helper()
	self, err := os.Executable()
	check(w.t, err)
	server := map[string]any{"command": self, "args": []string{permissionRole, w.log}}
	if w.deadServer {
		server = map[string]any{"command": "false"}
	}
	if w.lateServer {
		server = map[string]any{"command": "sh", "args": []string{"-c", lateServer, self, permissionRole, w.log}}
	}
	tools := []string{"Bash", "Read", "Write", "Edit", "NotebookEdit", "Glob", "Grep"}
	return []string{
		"-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose", "--replay-user-messages",
		"--mcp-config", encode(map[string]any{"mcpServers": map[string]any{"coven": server}}), "--strict-mcp-config",
		"--permission-prompt-tool", "mcp__coven__approve", "--permission-mode", "default", "--tools", strings.Join(tools, ","),
		"--settings", encode(map[string]any{"permissions": map[string]any{"ask": tools}}), "--setting-sources", "", "--model", "sonnet",
	}
}

// lateServer reports its start and serves once the file with the suffix .go exists.
const lateServer = `touch "$2.begun"; until test -e "$2.go"; do sleep 0.01; done; exec "$0" "$1" "$2"`

// process is one run of the CLI, with a pipe as input and a raw terminal as output.
type process struct {
	*world
	command *exec.Cmd
	stdin   io.WriteCloser
	stderr  bytes.Buffer
	exit    string
	unpaid  bool // its cost is not compared

	mu     sync.Mutex
	lines  []string // without the newline and the bytes before the object
	tail   string   // output after the last newline
	seen   chan struct{}
	closed chan struct{}
}

func (w *world) start(env []string, flags ...string) *process {
	w.t.Helper()
	master, slave := openTerminal(w.t)
	p := &process{world: w, seen: make(chan struct{}, 1), closed: make(chan struct{})}
	p.command = exec.Command(w.cli.path, append(w.flags(), flags...)...)
	p.command.Dir, p.command.Env = w.cwd, w.env(env...)
	p.command.Stdout, p.command.Stderr = slave, &p.stderr
	p.command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	stdin, err := p.command.StdinPipe()
	check(w.t, err)
	p.stdin = stdin
	check(w.t, p.command.Start())
	check(w.t, slave.Close())
	go p.read(master)
	w.t.Cleanup(func() { _ = p.command.Process.Kill() }) // it has already ended unless the test failed
	return p
}

// openTerminal opens a raw pty and checks that both ends belong together.
// Once, the output of one process appeared on another's terminal, for an
// unknown reason.
func openTerminal(t *testing.T) (master, slave *os.File) {
	t.Helper()
	for {
		master, slave, err := pty.Open()
		check(t, err)
		name := slaveName(t, master, slave)
		if slave.Name() == name {
			_, err = term.MakeRaw(int(slave.Fd()))
			check(t, err)
			return master, slave
		}
		t.Logf("opened %s in place of %s", slave.Name(), name)
		check(t, errors.Join(master.Close(), slave.Close()))
	}
}

func (p *process) read(master *os.File) {
	defer close(p.closed)
	defer func() { _ = master.Close() }() // only read
	reader := bufio.NewReader(master)
	for {
		line, err := reader.ReadString('\n')
		p.mu.Lock()
		if err != nil { // EIO: the terminal has no writer any more
			p.tail = line
			p.mu.Unlock()
			return
		}
		p.lines = append(p.lines, strings.TrimSuffix(line[max(strings.IndexByte(line, '{'), 0):], "\n"))
		p.mu.Unlock()
		select {
		case p.seen <- struct{}{}:
		default:
		}
	}
}

func (p *process) send(text string) { p.say("", text) }

// say sends a message with an ID. If the ID is empty, the CLI chooses one.
func (p *process) say(id, text string) {
	p.t.Helper()
	line := map[string]any{"type": "user", "message": map[string]any{"role": "user", "content": []any{
		map[string]any{"type": "text", "text": text}, map[string]any{"type": "text", "text": "Do it."},
	}}}
	if id != "" {
		line["uuid"] = id
	}
	_, err := io.WriteString(p.stdin, encode(line)+"\n")
	if !errors.Is(err, syscall.EPIPE) { // the CLI may have ended already
		check(p.t, err)
	}
}

// wait closes the input and waits for the end, once.
func (p *process) wait() *process {
	p.t.Helper()
	if p.command.ProcessState != nil {
		return p
	}
	if err := p.stdin.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		p.t.Fatal(err)
	}
	timer := time.AfterFunc(patience, func() { _ = p.command.Process.Kill() })
	defer timer.Stop()
	var exit *exec.ExitError
	if err := p.command.Wait(); err != nil && !errors.As(err, &exit) {
		p.t.Fatal(err)
	}
	p.exit = strconv.Itoa(p.command.ProcessState.ExitCode())
	select {
	case <-p.closed:
	case <-time.After(patience):
		p.t.Fatal("the terminal is still open")
	}
	return p
}

func (p *process) signal(sig syscall.Signal) {
	p.t.Helper()
	check(p.t, p.command.Process.Signal(sig))
}

// held waits until the model reaches the hold.
func (p *process) held(name string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	check(p.t, p.api.WaitHeld(ctx, name))
}

// results waits for count result events.
func (p *process) results(count int) {
	p.t.Helper()
	deadline := time.After(patience)
	for {
		p.mu.Lock()
		seen := 0
		for _, line := range p.lines {
			if isResult(line) {
				seen++
			}
		}
		p.mu.Unlock()
		if seen >= count {
			return
		}
		select {
		case <-p.seen:
		case <-deadline:
			p.t.Fatalf("no %d results; stderr: %s", count, p.stderr.String())
		}
	}
}

// isResult reports whether the line is a result event. Its type need not be
// the first key.
func isResult(line string) bool {
	var e event
	return json.Unmarshal([]byte(line), &e) == nil && e.Type == "result"
}

// asked reads the log of the permission servers.
func (w *world) asked() []asked {
	w.t.Helper()
	data, err := os.ReadFile(w.log)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	check(w.t, err)
	var all []asked
	decoder := json.NewDecoder(bytes.NewReader(data))
	for decoder.More() {
		var one asked
		check(w.t, decoder.Decode(&one))
		all = append(all, one)
	}
	return all
}

// servers returns the number of permission servers that were started.
func (w *world) servers() int {
	w.t.Helper()
	count := 0
	for _, one := range w.asked() {
		if one.ToolName == "" {
			count++
		}
	}
	return count
}

// killServer kills the latest permission server.
func (w *world) killServer() {
	w.t.Helper()
	all := w.asked()
	last := slices.MaxFunc(all, func(a, b asked) int { return a.PID - b.PID })
	check(w.t, syscall.Kill(last.PID, syscall.SIGKILL))
	eventually(w.t, func() bool { return syscall.Kill(last.PID, 0) != nil })
}

// startedFile waits for the file with the process ID of a command, and
// kills the command's group at the end of the test.
func (w *world) startedFile() int {
	w.t.Helper()
	var pid int
	eventually(w.t, func() bool {
		data, err := os.ReadFile(filepath.Join(w.cwd, "started"))
		return err == nil && json.Unmarshal(bytes.TrimSpace(data), &pid) == nil
	})
	w.t.Cleanup(func() { _ = syscall.Kill(-pid, syscall.SIGKILL) }) // it may have ended
	return pid
}

// eventually polls until done returns true, with a generous timeout.
func eventually(t *testing.T, done func() bool) {
	t.Helper()
	deadline := time.After(patience)
	for !done() {
		select {
		case <-time.After(5 * time.Millisecond):
		case <-deadline:
			t.Fatal("waited in vain")
		}
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
