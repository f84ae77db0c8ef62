package pluginregistry

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/coven-run/coven/internal/project/trust"
	"github.com/coven-run/coven/plugins/provider"
)

// isGone reports whether an error means that a file does not exist.
func isGone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// assess sets the state of a plugin that is not hidden.
func (r *Registry) assess(p *Plugin, lock Lock) {
	if p.State == BuiltIn {
		if lock.Names(p.ID()) {
			p.Detail = LockFile + " names a file with this name, but there is none"
		}
		return
	}
	p.Locked = lock.Names(p.ID())
	if p.Detail = r.obstacle(p.File); p.Detail != "" {
		p.State = Broken
		return
	}
	if !p.Pinned() {
		p.State, p.Detail = Trusted, "yours"
		return
	}
	if err := p.read(); err != nil {
		p.State, p.Detail = Broken, err.Error()
		return
	}
	if p.Detail = r.unpinned(p.runner); p.Detail != "" {
		p.State = Broken
		return
	}
	switch {
	case p.Locked && !lock.Allows(p.ID(), p.SHA256):
		if p.Project {
			_, _, p.Before = r.trusted(*p)
		}
		p.State, p.Detail = Mismatch, lock.hashes(p.ID())
	case !p.Project:
		p.State, p.Detail = Trusted, "yours, as "+LockFile+" says"
	default:
		p.State, p.Detail, p.Before = r.trusted(*p)
	}
}

// trusted returns the state of a project's plugin according to the trust store.
func (r *Registry) trusted(p Plugin) (State, string, trust.Item) {
	if r.options.Store.Everything() {
		return Trusted, "by " + trust.Variable + "=1", trust.Item{}
	}
	item, known, err := r.options.Store.Find(trust.KindPlugin, p.ID())
	switch {
	case err != nil:
		return Untrusted, err.Error(), trust.Item{}
	case !known:
		return Untrusted, "", trust.Item{}
	case item.SHA256 != p.SHA256:
		return Changed, "since it was trusted", item
	}
	return Trusted, "", trust.Item{}
}

// obstacle returns the reason why a file cannot be run, or "".
func (r *Registry) obstacle(file string) string {
	info, err := os.Stat(file)
	if isGone(err) {
		to, _ := os.Readlink(file)
		return fmt.Sprintf("the link target %q does not exist", to)
	}
	if err != nil {
		return err.Error()
	}
	if reason := mode(info); reason != "" {
		return reason
	}
	if err := unix.Access(file, unix.X_OK); err != nil {
		return "no permission to execute: " + err.Error()
	}
	return ""
}

// Verified returns the plugin with the details of its content, and checks its
// copy.
func (r *Registry) Verified(p Plugin) Plugin {
	switch {
	case p.File == "", p.State == Broken, p.State == Misnamed:
	case p.SHA256 == "":
		if err := p.read(); err != nil && p.State == Trusted { // it may be too large or unreadable
			p.Detail += ", " + err.Error()
			if errors.Is(err, provider.ErrDeclaration) {
				p.State, p.Detail = Broken, err.Error()
			}
		}
	case p.State == Trusted:
		file := r.copyOf(p)
		if _, err := os.Lstat(file); err == nil && checkCopy(file, p.SHA256) != nil {
			p.Detail = "the copy in " + filepath.Dir(file) + " is damaged: the next run replaces it"
		}
	}
	return p
}
