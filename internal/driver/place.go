package driver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coven-run/coven/internal/process"
	"github.com/coven-run/coven/internal/sandbox"
	"github.com/coven-run/coven/plugins/provider"
)

// cliEnvironment holds the directories and access rights of a job's CLI.
type cliEnvironment struct {
	room    *sandbox.Room // nil for no sandbox
	files   string        // Request.FilesDir
	state   string        // Request.StateDir
	temp    string        // Request.TempDir
	reading bool          // the CLI must not change the worktree
	gate    []string      // KEY=VALUE settings to reach the gate

	forwarder Forwarder // for the CLI's API; nil if the CLI has the user's credential
}

// newPlace returns the place of a job. files is the directory of its socket.
func newPlace(job Job, files string, gate []string) (cliEnvironment, error) {
	p := cliEnvironment{gate: gate, room: job.Room, files: files, state: cmp.Or(job.StateDir, files), temp: files, reading: job.ReadOnly}
	if p.room != nil {
		p.temp = p.room.Temp()
	}
	if err := os.MkdirAll(p.state, 0o700); err != nil {
		return cliEnvironment{}, fmt.Errorf("make the agent's directory: %w", err)
	}
	return p, nil
}

// forward starts the command's forwarder, if it needs one.
func (p *cliEnvironment) forward(ctx context.Context, job Job, command provider.Command) error {
	if command.Forward == "" || job.Forward == nil {
		return nil
	}
	f, err := job.Forward(ctx, command.Forward)
	if err != nil {
		return err
	}
	p.forwarder = f
	return nil
}

// close ends the forwarder. The CLI must have ended.
func (p *cliEnvironment) close() {
	if p.forwarder != nil {
		_ = p.forwarder.Close() // the run is over
	}
}

// link links the files of the CLI's login into its state directory and returns those that exist.
func (p cliEnvironment) link(logins []string) ([]string, error) {
	var found []string
	for _, file := range logins {
		at := filepath.Join(p.state, filepath.Base(file))
		if now, err := os.Readlink(at); err != nil || now != file {
			if err := os.RemoveAll(at); err != nil {
				return nil, fmt.Errorf("link the login of the agent CLI: %w", err)
			}
		}
		info, err := os.Stat(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil || !filepath.IsAbs(file) || !info.Mode().IsRegular() {
			return nil, fmt.Errorf("the login of the agent CLI, %s, is not a file: %w", file, err)
		}
		if err := os.Symlink(file, at); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, fmt.Errorf("link the login of the agent CLI: %w", err)
		}
		found = append(found, file)
	}
	return found, nil
}

// boundary returns the access rights of the CLI, or nil if it runs without a sandbox.
func (p cliEnvironment) boundary(command provider.Command) (*process.Boundary, error) {
	var logins []string
	var err error
	if p.forwarder == nil {
		logins, err = p.link(command.Logins)
	}
	if err != nil || p.room == nil {
		return nil, err
	}
	return p.room.Boundary(sandbox.Access{
		ReadOnly: p.reading, Write: slices.Concat([]string{p.state}, logins), Show: logins, Connect: []string{p.files},
	}), nil
}

// environment returns the variables of the CLI. Later values override earlier ones, in the order
// user, sandbox, provider, step, gate, forwarder, network.
func (r *Runner) environment(job Job, command provider.Command, at cliEnvironment) []string {
	user := Environment(r.Environ(), slices.Concat(job.Pass, command.Pass))
	var own, forwarded []string
	if at.forwarder != nil {
		user = slices.DeleteFunc(user, func(kv string) bool {
			name, _, _ := strings.Cut(kv, "=")
			return at.forwarder.Withholds(name)
		})
		forwarded = at.forwarder.Env()
	}
	if at.room != nil {
		own = at.room.Env(user)
	}
	return sandbox.Merge(user, own, command.Env, job.Env, at.gate, forwarded, job.Network)
}
