package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// zoo builds the program of examples/plugins/zoo, once in a test process. A plugin whose name differs from
// its file needs a separate build.
type zoo struct {
	mu    sync.Mutex
	dir   string
	built map[string]string // file by name
}

// animals is the zoo of this test process.
var animals = &zoo{}

// zooKeeper runs the tests and removes the built files.
type zooKeeper struct{ *testing.M }

// Run implements testscript.TestingM.
func (k zooKeeper) Run() int {
	defer animals.close()
	return k.M.Run()
}

// program returns the file of the program. called is the name that it assumes, or empty for that of its file.
func (z *zoo) program(called string) (string, error) {
	z.mu.Lock()
	defer z.mu.Unlock()
	if file := z.built[called]; file != "" {
		return file, nil
	}
	if z.dir == "" {
		dir, err := os.MkdirTemp("", "zoo")
		if err != nil {
			return "", err
		}
		z.dir, z.built = dir, map[string]string{}
	}
	file := filepath.Join(z.dir, "zoo"+called)
	cmd := exec.Command("go", "build", "-ldflags", "-s -w -X main.called="+called, "-o", file, "github.com/coven-run/coven/examples/plugins/zoo")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the zoo: %w: %s", err, out)
	}
	z.built[called] = file
	return file, nil
}

// close removes the built files.
func (z *zoo) close() {
	if z.dir != "" {
		_ = os.RemoveAll(z.dir)
	}
}

// put implements zoo DIR KIND-BEAST...: it puts plugins into a directory. With KIND-NAME=BEAST, a plugin
// has another name.
func (z *zoo) put(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: zoo DIR KIND-BEAST|KIND-NAME=BEAST...")
	}
	dir := ts.MkAbs(args[0])
	ts.Check(os.MkdirAll(dir, 0o755))
	for _, arg := range args[1:] {
		name, beast, other := strings.Cut(arg, "=")
		called := ""
		if other {
			kind, _, _ := strings.Cut(name, "-")
			called = "coven-" + kind + "-" + beast
		}
		program, err := z.program(called)
		ts.Check(err)
		file := filepath.Join(dir, "coven-"+name)
		_ = os.Remove(file) // from an earlier call
		if os.Link(program, file) != nil {
			data, err := os.ReadFile(program)
			ts.Check(err)
			ts.Check(os.WriteFile(file, data, 0o755))
		}
	}
}

// cmdExtinct implements extinct DIR: no plugin of the zoo that was started from below a directory may be
// running.
func cmdExtinct(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 1, "extinct DIR")
	dir := []byte(ts.MkAbs(args[0]) + "/")
	for deadline := time.Now().Add(patience); ; pause() {
		var left []string
		files, err := filepath.Glob("/proc/[0-9]*/cmdline")
		ts.Check(err)
		for _, file := range files {
			line, err := os.ReadFile(file)
			if err == nil && bytes.Contains(line, dir) && bytes.Contains(line, []byte("/coven-")) {
				left = append(left, string(line))
			}
		}
		if len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("these live on: %q", left)
		}
	}
}
