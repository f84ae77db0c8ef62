package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestCrashLevels plays the crash matrix on machines that lack namespaces or Landlock. TestCrash plays it
// on this machine, whose sandbox is full.
func TestCrashLevels(t *testing.T) {
	longRun(t)
	for _, lacks := range []string{"namespaces", "landlock"} {
		for _, g := range []grid{
			{story: "landing", kills: 5},
			{story: "nested", kills: 5},
		} {
			g.lacks = lacks
			t.Run(lacks+"/"+g.story, func(t *testing.T) { g.play(t, map[string]bool{}) })
		}
	}
}

// machineWithout makes the story's coven run on a kernel that lacks a feature. The user has accepted that
// there may be no sandbox.
func machineWithout(lacks string, env *testscript.Env) error {
	real, err := lookPath("coven", env.Getenv("PATH"))
	if err != nil {
		return err
	}
	bin := filepath.Join(env.WorkDir, ".bin")
	script := fmt.Sprintf("#!/bin/sh\nmkdir -p .coven/run && : > .coven/run/unsandboxed-accepted && exec without %s %s \"$@\"\n", lacks, real)
	if err := os.Mkdir(bin, 0o755); err != nil {
		return err
	}
	env.Setenv("PATH", strings.Join([]string{bin, env.Getenv("PATH")}, string(os.PathListSeparator)))
	return os.WriteFile(filepath.Join(bin, "coven"), []byte(script), 0o755)
}
