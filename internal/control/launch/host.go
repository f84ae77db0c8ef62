package launch

import (
	"context"
	"io"

	"github.com/coven-run/coven/internal/driver"
	"github.com/coven-run/coven/internal/permission"
	"github.com/coven-run/coven/internal/process"
	"github.com/coven-run/coven/internal/sandbox"
	"github.com/coven-run/coven/internal/tool/file"
)

// host carries out requests of an agent CLI: on files of the worktree only, and in the sandbox of the task. It
// implements driver.Host.
type host struct {
	launcher *Launcher
	root     string // of the worktree, with links resolved
	job      driver.Job
}

// ReadFile implements driver.Host.
func (h host) ReadFile(path string, line, limit int) (string, error) {
	place, err := permission.Resolve(h.root, path)
	if err != nil {
		return "", err
	}
	return file.ReadText(h.root, place, line, limit)
}

// WriteFile implements driver.Host.
func (h host) WriteFile(path, content string) error {
	place, err := permission.Resolve(h.root, path)
	if err != nil {
		return err
	}
	return file.WriteText(h.root, place, content)
}

// RunCommand implements driver.Host.
func (h host) RunCommand(ctx context.Context, command string, output io.Writer) (process.Exit, error) {
	exit, _, err := h.launcher.Workspace.RunWith(ctx, sandbox.Access{ReadOnly: h.job.ReadOnly, Apart: true}, process.Spec{
		Argv: []string{"bash", "-c", command}, Dir: h.job.Dir, Env: h.job.Env, Idle: h.job.Idle, Transcript: output,
	})
	return exit, err
}

// Hide implements driver.Host.
func (h host) Hide(text string) string { return h.launcher.Workspace.Secrets.Text(text) }
