package pluginregistry

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"github.com/google/renameio/v2"

	"github.com/coven-run/coven/plugins"
	"github.com/coven-run/coven/plugins/provider"
)

// UntrustedError means that a plugin of the project is not trusted.
type UntrustedError struct{ Plugin Plugin }

// Error names the plugin, its file and its hash.
func (e *UntrustedError) Error() string {
	p := e.Plugin
	switch {
	case p.State == Changed:
		return fmt.Sprintf("the %s plugin %s has changed since you trusted it: %s, sha256 %.12s (was %.12s)", p.Kind, p.Name, p.File, p.SHA256, p.Before.SHA256)
	case p.Detail != "":
		return fmt.Sprintf("the %s plugin %s of this repository is not trusted: %s, sha256 %.12s: %s", p.Kind, p.Name, p.File, p.SHA256, p.Detail)
	}
	return fmt.Sprintf("the %s plugin %s of this repository is not trusted: %s, sha256 %.12s", p.Kind, p.Name, p.File, p.SHA256)
}

// MismatchError means that the hash of a plugin is not in plugins.lock.
type MismatchError struct{ Plugin Plugin }

// Error names the plugin, its file and its hash.
func (e *MismatchError) Error() string {
	p := e.Plugin
	return fmt.Sprintf("the %s plugin %s does not match %s (%s): %s, sha256 %.12s", p.Kind, p.Name, LockFile, p.Detail, p.File, p.SHA256)
}

// BrokenError means that the file of a plugin cannot be run.
type BrokenError struct{ Plugin Plugin }

// Error names the plugin, its file and the reason.
func (e *BrokenError) Error() string {
	p := e.Plugin
	return fmt.Sprintf("the %s plugin %s cannot be run: %s: %s", p.Kind, p.Name, p.File, p.Detail)
}

// CacheError is the reason why copies of plugins cannot be stored.
type CacheError struct{ Dir, Reason string }

// Error returns "DIR: REASON".
func (e *CacheError) Error() string { return e.Dir + ": " + e.Reason }

// Resolve returns the program of a plugin. The error is a plugins.ErrUnknown, an
// *UntrustedError, a *MismatchError, a *BrokenError or a *CacheError, or it describes an
// invalid lock.
func (r *Registry) Resolve(kind plugins.Kind, name string) (plugins.Binary, error) {
	p, err := r.Find(kind, name)
	if err != nil {
		return plugins.Binary{}, err
	}
	switch p.State {
	case BuiltIn:
		return r.shipped(p), nil
	case Mismatch:
		return plugins.Binary{}, &MismatchError{p}
	case Broken:
		return plugins.Binary{}, &BrokenError{p}
	case Trusted:
		if p.Pinned() {
			return r.copyPinned(p)
		}
		return r.inPlace(p)
	}
	return plugins.Binary{}, &UntrustedError{p}
}

// inPlace returns the program of a plugin that belongs to the user.
func (r *Registry) inPlace(p Plugin) (plugins.Binary, error) {
	if p.Kind == plugins.KindProvider {
		if err := p.read(); errors.Is(err, provider.ErrDeclaration) { // ignore other read errors
			p.Detail = err.Error()
			return plugins.Binary{}, &BrokenError{p}
		}
	}
	return plugins.Binary{Argv: []string{p.File}, Capabilities: p.Capabilities}, nil
}

func (r *Registry) shipped(p Plugin) plugins.Binary {
	for _, s := range r.options.Shipped {
		if s.Kind == p.Kind && s.Name == p.Name {
			return plugins.Binary{Argv: s.Argv, BuiltIn: true, Capabilities: s.Capabilities}
		}
	}
	return plugins.Binary{}
}

// copyOf returns the path of a plugin's copy.
func (r *Registry) copyOf(p Plugin) string {
	return filepath.Join(r.options.CacheDir, "plugins", p.SHA256, p.ID())
}

// copyPinned returns the copy of a pinned plugin. It replaces a missing or
// damaged copy.
func (r *Registry) copyPinned(p Plugin) (plugins.Binary, error) {
	hash, err := hex.DecodeString(p.SHA256)
	if err != nil {
		return plugins.Binary{}, fmt.Errorf("copy plugin %s: %w", p.ID(), err)
	}
	file := r.copyOf(p)
	if err := r.prepareCopyDir(filepath.Dir(file)); err != nil {
		return plugins.Binary{}, err
	}
	if checkCopy(file, p.SHA256) != nil {
		if err := p.copyTo(file); err != nil {
			return plugins.Binary{}, err
		}
		if err := checkCopy(file, p.SHA256); err != nil {
			return plugins.Binary{}, &CacheError{file, "the copy of a plugin differs from what was written: " + err.Error()}
		}
	}
	return plugins.Binary{Argv: []string{file}, SHA256: hash, Capabilities: p.Capabilities}, nil
}

// prepareCopyDir creates the directory of a copy, writable by the user only.
func (r *Registry) prepareCopyDir(dir string) error {
	switch {
	case !filepath.IsAbs(dir):
		return &CacheError{dir, "no directory for copies of plugins: neither XDG_CACHE_HOME nor HOME is set to a directory"}
	case r.options.UntrustedPaths.Contains(dir):
		return &CacheError{dir, "copies of plugins cannot be stored inside the repository"}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("copy a plugin: %w", err)
	}
	for _, own := range []string{filepath.Dir(dir), dir} {
		info, err := os.Lstat(own)
		if err != nil {
			return fmt.Errorf("copy a plugin: %w", err)
		}
		stat, ok := info.Sys().(*syscall.Stat_t)
		if !info.IsDir() || !ok || int(stat.Uid) != os.Geteuid() {
			return &CacheError{own, "it is not a directory owned by you: copies of plugins would not be safe there"}
		}
		if info.Mode().Perm() != 0o700 {
			if err := os.Chmod(own, 0o700); err != nil {
				return fmt.Errorf("copy a plugin: %w", err)
			}
		}
	}
	return nil
}

// checkCopy returns an error if a copy is missing, damaged or not protected.
func checkCopy(file, hash string) error {
	f, info, err := openBounded(file, syscall.O_NOFOLLOW)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // read only
	stat, ok := info.Sys().(*syscall.Stat_t)
	if info.Mode().Perm() != 0o500 || !ok || int(stat.Uid) != os.Geteuid() {
		return errors.New("other users may have changed it")
	}
	c, err := digest(f, io.Discard)
	if err == nil && c.hash != hash {
		err = errors.New("its content differs")
	}
	return err
}

// copyTo creates the copy. It fails if the content is not the assessed one.
func (p Plugin) copyTo(file string) error {
	from, _, err := openBounded(p.File)
	if err != nil {
		return fmt.Errorf("copy plugin %s: %w", p.ID(), err)
	}
	defer from.Close() //nolint:errcheck // read only
	to, err := renameio.NewPendingFile(file, renameio.WithTempDir(filepath.Dir(file)), renameio.WithStaticPermissions(0o500))
	if err != nil {
		return fmt.Errorf("copy plugin %s: %w", p.ID(), err)
	}
	defer to.Cleanup() //nolint:errcheck // does nothing after the rename
	c, err := digest(from, to)
	if err == nil && c.hash != p.SHA256 {
		p.State, p.Before.SHA256, p.SHA256 = Changed, p.SHA256, c.hash
		return &UntrustedError{p}
	}
	if err == nil {
		err = to.CloseAtomicallyReplace()
	}
	if err != nil {
		return fmt.Errorf("copy plugin %s: %w", p.ID(), err)
	}
	return nil
}
