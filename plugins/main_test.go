package plugins_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coven-run/coven/internal/process"
	"github.com/coven-run/coven/plugins"
	"github.com/coven-run/coven/plugins/builtin/claude"
	"github.com/coven-run/coven/plugins/hostservice"
	"github.com/coven-run/coven/plugins/provider"
	"github.com/coven-run/coven/plugins/reviewer"
)

// TestMain lets the test binary also run as the launcher command and as a built-in plugin.
func TestMain(m *testing.M) {
	verb := ""
	if len(os.Args) > 1 {
		verb = os.Args[1]
	}
	switch verb {
	case "exec":
		os.Exit(process.Main(os.Args[2:]))
	case "plugin":
		plugins.Serve(plugins.Provider(claude.Provider{}))
		os.Exit(0)
	}
	code := m.Run()
	if zooDir != "" {
		_ = os.RemoveAll(zooDir)
	}
	os.Exit(code)
}

// limit is the timeout of every wait in these tests. No wait should come close to it.
const limit = 2 * time.Minute

var (
	zooDir  string
	zooOnce = sync.OnceValues(func() (string, error) {
		dir, err := os.MkdirTemp("", "zoo")
		if err != nil {
			return "", err
		}
		zooDir = dir
		file := filepath.Join(dir, "zoo")
		out, err := exec.Command("go", "build", "-o", file, "github.com/coven-run/coven/examples/plugins/zoo").CombinedOutput()
		if err != nil {
			return "", fmt.Errorf("build the zoo: %w: %s", err, out)
		}
		return file, nil
	})
	pythonOnce = sync.OnceValues(func() (string, error) { // the example reviewer
		if _, err := zooOnce(); err != nil {
			return "", err
		}
		out, err := exec.Command("../examples/plugins/reviewer-python/build", zooDir).CombinedOutput()
		if err != nil {
			return "", fmt.Errorf("build the reviewer in Python: %w: %s", err, out)
		}
		return filepath.Join(zooDir, "coven-reviewer-python"), nil
	})
)

// cage is a host for the plugins in examples/plugins/zoo. At the end of the test it checks that no process
// and no socket is left.
type cage struct {
	host    *plugins.Host
	dir     string // of the plugins' programs; in the command lines of all their descendants
	sockets string
	sum     []byte                // expected hash of the plugins
	can     provider.Capabilities // declared by the claude provider
	starts  atomic.Int64
}

func newCage(t testing.TB) *cage {
	t.Helper()
	_, err := zooOnce()
	must(t, err)
	self, err := os.Executable()
	must(t, err)
	launcher, err := process.NewLauncher(self, "exec")
	must(t, err)
	c := &cage{dir: t.TempDir()}
	c.sockets, err = os.MkdirTemp("", "s") // short, because a socket's path must be short
	must(t, err)
	c.host = plugins.NewHost(plugins.HostOptions{
		Start: func(argv ...string) (*exec.Cmd, func(), error) {
			c.starts.Add(1)
			return launcher.Command(argv...)
		},
		Sockets: c.sockets, Dir: c.sockets,
		Env: func() []string { return []string{"PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8"} },
		Resolve: func(kind plugins.Kind, name string) (plugins.Binary, error) {
			switch {
			case kind == plugins.KindProvider && name == "claude":
				return plugins.Binary{Argv: []string{self, "plugin", c.dir}, BuiltIn: true, Capabilities: c.can}, nil
			case kind == plugins.KindProvider, name == "nobody":
				return plugins.Binary{}, plugins.ErrUnknown
			}
			file := filepath.Join(c.dir, "coven-"+string(kind)+"-"+name)
			build := zooOnce
			if name == "python" {
				build = pythonOnce
			}
			program, err := build()
			if err != nil {
				return plugins.Binary{}, err
			}
			if err := os.Symlink(program, file); err != nil && !errors.Is(err, fs.ErrExist) {
				return plugins.Binary{}, err
			}
			return plugins.Binary{Argv: []string{file}, SHA256: c.sum}, nil
		},
	})
	t.Cleanup(func() { c.empty(t) })
	return c
}

// empty closes the host and checks that nothing is left.
func (c *cage) empty(t testing.TB) {
	begun := time.Now()
	c.host.Close()
	if took := time.Since(begun); took > 20*time.Second {
		t.Errorf("closing took %s", took)
	} else {
		t.Logf("closing took %s", took.Round(time.Millisecond))
	}
	if left := c.living(); len(left) > 0 {
		t.Errorf("these live on: %q", left)
	}
	if left, err := os.ReadDir(c.sockets); err != nil {
		t.Error(err)
	} else if len(left) > 0 {
		t.Errorf("the directory of sockets holds %v", left)
	}
	_ = os.RemoveAll(c.sockets)
}

// living returns the command lines of all processes of this cage.
func (c *cage) living() []string {
	var lines []string
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range files {
		line, err := os.ReadFile(file)
		if err == nil && bytes.Contains(line, []byte(c.dir)) {
			lines = append(lines, string(line))
		}
	}
	return lines
}

// ask calls a reviewer of the zoo with a generous timeout.
func (c *cage) ask(t testing.TB, beast string, change reviewer.Change, host hostservice.Services) (reviewer.Review, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	r, err := c.host.Reviewer(ctx, beast)
	if err != nil {
		return reviewer.Review{}, err
	}
	return r.Review(ctx, change, host)
}

// titled returns a change for a task with the title.
func titled(title string) reviewer.Change {
	return reviewer.Change{Task: reviewer.Task{ID: "t-1", Title: title}, Round: 1}
}

// accompany calls the well-behaved plugin continuously until stop is called, and fails the test if a call
// fails.
func (c *cage) accompany(t *testing.T) (stop func()) {
	t.Helper()
	enough, over, answered := make(chan struct{}), make(chan error, 1), make(chan struct{}, 1)
	go func() {
		for n := 0; ; n++ {
			title := strconv.Itoa(n)
			got, err := c.ask(t, "well", titled(title), nil)
			if err != nil || got.Summary != title {
				over <- fmt.Errorf("call %d: %+v, %w", n, got, err)
				return
			}
			select {
			case answered <- struct{}{}:
			default:
			}
			select {
			case <-enough:
				over <- nil
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	}()
	wait := func() error {
		select {
		case <-answered:
			return nil
		case err := <-over:
			over <- err
			return err
		case <-time.After(limit):
			return errors.New("it does not answer")
		}
	}
	if err := wait(); err != nil {
		t.Fatal(err)
	}
	return sync.OnceFunc(func() {
		<-answered // may be from an earlier call
		if err := wait(); err != nil {
			t.Errorf("the well-behaved plugin, after all that: %v", err)
		}
		close(enough)
		if err := <-over; err != nil {
			t.Errorf("the well-behaved plugin: %v", err)
		}
	})
}

// fakeServices implements coven's services for a test.
type fakeServices struct {
	root *os.Root
	run  func(ctx context.Context) error
	wait <-chan struct{} // Diff with paths waits for it

	mu  sync.Mutex
	log []string
}

func (d *fakeServices) RunAgent(ctx context.Context, ask hostservice.Ask) (hostservice.Answer, error) {
	if d.run != nil {
		return hostservice.Answer{}, d.run(ctx)
	}
	return hostservice.Answer{Text: ask.Prompt}, nil
}

func (d *fakeServices) Diff(ctx context.Context, paths ...string) (string, error) {
	if len(paths) > 0 {
		select {
		case <-d.wait:
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
	return "diff", nil
}

func (d *fakeServices) ReadFile(_ context.Context, path string) ([]byte, error) {
	content, err := d.root.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fs.ErrPermission
	}
	return content, err
}

func (d *fakeServices) Log(_ context.Context, text string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.log = append(d.log, text)
	return nil
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// says fails the test unless err wraps class and contains the words.
func says(t *testing.T, err, class error, words ...string) {
	t.Helper()
	if err == nil {
		t.Fatal("no error")
	}
	if !errors.Is(err, class) {
		t.Errorf("not a %q: %v", class, err)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("it does not say %q: %v", word, err)
		}
	}
	t.Log(err)
}
