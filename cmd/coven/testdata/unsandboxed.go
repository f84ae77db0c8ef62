// This file replaces internal/control/workspace/sandbox.go in the coven that BenchmarkSandbox compares with
// the real one. It is the same without a sandbox.

package workspace

import (
	"context"

	"github.com/coven-run/coven/internal/driver"
	"github.com/coven-run/coven/internal/process"
	"github.com/coven-run/coven/internal/sandbox"
)

// Room returns no room.
func (s *Workspace) Room() (*sandbox.Room, error) { return nil, nil }

// Isolated calls work without isolation.
func (s *Workspace) Isolated(_ context.Context, work func() error) error { return work() }

// Run runs a program of the task and returns its output.
func (s *Workspace) Run(ctx context.Context, spec process.Spec) (process.Exit, []byte, error) {
	spec.Env = append(driver.Environment(s.Environ(), s.Pass), spec.Env...)
	return s.Launcher.Run(ctx, spec)
}
