package e2e_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/coven-run/coven/distributed/server/servertest"
)

// bin is the directory of the programs.
var bin string

// TestMain builds the programs, if there is a server.
func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	if _, err := servertest.Binary("server"); err != nil {
		return m.Run() // the tests skip
	}
	dir, err := os.MkdirTemp("", "e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a temporary directory
	bin = dir
	for _, b := range []struct{ module, program string }{{"../..", "cmd/coven"}, {"../..", "internal/fake/fakeapi/serve"}, {"..", "cmd/coven-worker"}} {
		if err := build(b.module, filepath.Join(bin, filepath.Base(b.program)), "./"+b.program); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return m.Run()
}

// build builds a program of a module, whose directory is given.
func build(module, program string, args ...string) error {
	cmd := exec.CommandContext(context.Background(), "go", append([]string{"build", "-o", program}, args...)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = module, os.Stdout, os.Stderr
	return cmd.Run()
}
