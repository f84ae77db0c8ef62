package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// cmdExample implements example DIR NAME...: it builds example plugins into a directory, each in the way of
// its author.
func cmdExample(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: example DIR NAME...")
	}
	dir := ts.MkAbs(args[0])
	ts.Check(os.MkdirAll(dir, 0o755))
	for _, name := range args[1:] {
		cmd := exec.Command("go", "build", "-o", filepath.Join(dir, "coven-"+name), ".")
		if name == "reviewer-python" {
			cmd = exec.Command("./build", dir)
		}
		cmd.Dir = filepath.Join("..", "..", "examples", "plugins", name)
		cmd.Env = append(os.Environ(), "GOPROXY=off", "GOWORK=off")
		if out, err := cmd.CombinedOutput(); err != nil {
			ts.Fatalf("build %s: %v\n%s", name, err, out)
		}
	}
}

// condition reports whether a condition of a script, in brackets, holds.
func condition(name string) (bool, error) {
	switch name {
	case "python": // plugins in Python can be built and run here, or must be
		return os.Getenv("COVEN_REQUIRE_PYTHON") != "" ||
			exec.Command("/usr/bin/python3", "-c", "import grpc, grpc_tools, cryptography").Run() == nil, nil
	case "users": // programs can run as other users
		_, err := exec.LookPath("setpriv")
		return os.Geteuid() == 0 && err == nil, nil
	case "venv": // Python can create virtual environments
		return exec.Command("python3", "-c", "import venv, ensurepip").Run() == nil, nil
	case "chromium": // a real browser is installed
		_, err := chromium()
		return err == nil, nil
	case "overlay": // the kernel lets this user combine directories
		return combines(), nil
	}
	return false, fmt.Errorf("no condition %q", name)
}

// combines reports whether the kernel lets this user combine directories where tests run. Without that, programs of a task
// have empty caches.
func combines() bool {
	dir, err := os.MkdirTemp("", "overlay")
	if err != nil {
		return false
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a temporary directory
	cmd := exec.Command("unshare", "-m", "sh", "-ec", "mkdir a b c d; mount -t overlay overlay -o userxattr,volatile,index=off,lowerdir=a,upperdir=b,workdir=c d")
	if os.Getuid() != 0 {
		cmd.Args = slices.Insert(cmd.Args, 1, "-Ur")
	}
	cmd.Dir = dir
	return cmd.Run() == nil
}

// cmdGoCache implements gocache: the user has the build cache of these tests, with their flags, so that a story does not
// compile the standard library.
func cmdGoCache(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 0 {
		ts.Fatalf("usage: gocache")
	}
	out, err := exec.Command("go", "env", "GOCACHE").Output()
	ts.Check(err)
	ts.Setenv("GOCACHE", strings.TrimSpace(string(out)))
	ts.Setenv("GOFLAGS", "-mod=mod "+os.Getenv("GOFLAGS"))
}
