//go:build !linux

package plugintest

import (
	"errors"
	"fmt"
	"os/exec"
)

func apart(*exec.Cmd) {}

func endGroup(cmd *exec.Cmd) { _ = cmd.Process.Kill() }

func marked(string) ([]int, error) {
	return nil, fmt.Errorf("list processes: there is no /proc: %w", errors.ErrUnsupported)
}

func endMarked(string) {}

type usage struct{ bytes, files, threads int }

func usageOf(string) (usage, error) {
	return usage{}, fmt.Errorf("look at a process: there is no /proc: %w", errors.ErrUnsupported)
}
