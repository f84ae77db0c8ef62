package registry

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/coven-run/coven/internal/trust"
)

// isGone reports whether an error says that there is no such file.
func isGone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// assess says what a plugin is fit for that no other hides.
func (r *Registry) assess(p *Plugin, lock Lock) {
	if p.State == BuiltIn {
		if lock.Names(p.ID()) {
			p.Detail = LockFile + " names a file of this name, and there is none"
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

// trusted reports whether the bytes of a project's plugin are trusted.
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

// obstacle says what is in the way of running a file; empty when nothing is.
func (r *Registry) obstacle(file string) string {
	info, err := os.Stat(file)
	if isGone(err) {
		to, _ := os.Readlink(file)
		return fmt.Sprintf("the link leads to %q, which is not there", to)
	}
	if err != nil {
		return err.Error()
	}
	if reason := mode(info); reason != "" {
		return reason
	}
	if err := unix.Access(file, unix.X_OK); err != nil {
		return "you may not execute it: " + err.Error()
	}
	return ""
}

// Verified is a plugin, with what its bytes are, and what is wrong with coven's
// copy of them.
func (r *Registry) Verified(p Plugin) Plugin {
	switch {
	case p.File == "", p.State == Broken, p.State == Misnamed:
	case p.SHA256 == "":
		if err := p.read(); err != nil && p.State == Trusted { // it may be larger, or only executable
			p.Detail += ", " + err.Error()
		}
	case p.State == Trusted:
		file := r.copyOf(p)
		if _, err := os.Lstat(file); err == nil && checkCopy(file, p.SHA256) != nil {
			p.Detail = "the copy in " + filepath.Dir(file) + " is damaged: the next run makes it again"
		}
	}
	return p
}
