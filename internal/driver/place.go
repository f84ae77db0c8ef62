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

// cliEnvironment is the place of an agent with the directories and the forwarder of its CLI.
type cliEnvironment struct {
	Place
	files string   // Request.FilesDir
	state string   // Request.StateDir
	temp  string   // Request.TempDir
	gate  []string // KEY=VALUE settings to reach the gate

	forwarder Forwarder // for the CLI's API; nil if the CLI has the user's credential
}

// newEnvironment returns the environment of a CLI in a place. files is the directory of its socket.
func newEnvironment(place Place, files string, gate []string) (cliEnvironment, error) {
	p := cliEnvironment{Place: place, gate: gate, files: files, state: cmp.Or(place.StateDir, files), temp: files}
	if p.Room != nil {
		p.temp = p.Room.Temp()
	}
	if err := os.MkdirAll(p.state, 0o700); err != nil {
		return cliEnvironment{}, fmt.Errorf("make the agent's directory: %w", err)
	}
	return p, nil
}

// forward starts the command's forwarder, if it needs one.
func (p *cliEnvironment) forward(ctx context.Context, command provider.Command) error {
	if command.Forward == "" || p.Forward == nil {
		return nil
	}
	f, err := p.Forward(ctx, command.Forward)
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
	var ports []int
	var err error
	if p.forwarder == nil {
		logins, err = p.link(command.Logins)
	} else {
		ports = []int{p.forwarder.Port()}
	}
	if err != nil || p.Room == nil {
		return nil, err
	}
	return p.Room.Boundary(sandbox.Access{
		ReadOnly: p.ReadOnly, Apart: true, Write: slices.Concat([]string{p.state}, logins), Show: logins, Connect: []string{p.files}, Ports: ports,
	}), nil
}

// environment returns the variables of the CLI. Later values override earlier ones, in the order
// user, sandbox, provider, step, gate, forwarder, network.
func (p cliEnvironment) environment(environ []string, command provider.Command) []string {
	user := Environment(environ, slices.Concat(p.Pass, command.Pass))
	var own, forwarded []string
	if p.forwarder != nil {
		user = slices.DeleteFunc(user, func(kv string) bool {
			name, _, _ := strings.Cut(kv, "=")
			return p.forwarder.Withholds(name)
		})
		forwarded = p.forwarder.Env()
	}
	if p.Room != nil {
		own = p.Room.Env(user)
	}
	return sandbox.Merge(user, own, command.Env, p.Env, p.gate, forwarded, p.Network)
}
