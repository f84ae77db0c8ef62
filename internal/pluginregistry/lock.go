package pluginregistry

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coven-run/coven/internal/config/schema"
	"github.com/coven-run/coven/internal/config/yamldoc"
	"github.com/coven-run/coven/internal/file/regularfile"
	"github.com/coven-run/coven/internal/project/trust"
	"github.com/coven-run/coven/internal/text/lazyregexp"
)

// LockFile is the path of the lock file, relative to the root of the repository.
const LockFile = ".coven/plugins.lock"

// AnyPlatform is the platform of plugins that are the same everywhere, such as scripts.
const AnyPlatform = "any"

const (
	maxLock    = 1 << 20
	lockHeader = "# The plugins that this repository runs with: the SHA-256 of each, by platform.\n# coven trust writes this file: coven help plugins-lock\n"
)

// Lock maps file names of plugins and platforms to the permitted hashes.
type Lock map[string]map[string]string

type text = yamldoc.At[string]

// lockKeys is the format of the lock file.
type lockKeys struct {
	Plugins map[string]yamldoc.At[map[string]text] `yaml:"plugins"`
}

var (
	hashRE     = lazyregexp.New(`^[0-9a-f]{64}$`)
	platformRE = lazyregexp.New(`^(any|[a-z0-9]+/[a-z0-9]+)$`)
)

// ReadLock reads the lock file of a repository. The lock is empty if the file is missing
// or if root is empty, which means that there is no repository. If the file
// is invalid, the error is a yamldoc.Errors.
func ReadLock(root string) (Lock, error) {
	lock := Lock{}
	if root == "" {
		return lock, nil
	}
	data, err := regularfile.ReadIn(root, LockFile, maxLock)
	if errors.Is(err, fs.ErrNotExist) {
		return lock, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", LockFile, err)
	}
	doc, err := yamldoc.Parse(LockFile, data)
	if err != nil {
		return nil, err
	}
	var keys lockKeys
	doc.Decode(&keys)
	for id, hashes := range keys.Plugins {
		if !idRE.MatchString(id) {
			doc.Fail(hashes, fmt.Sprintf("%q is not the name of a plugin's file", id), "coven-KIND-NAME; KIND is one of "+strings.Join(kinds(), ", "))
		}
		if hashes.Set() && len(hashes.Value) == 0 {
			doc.Fail(hashes, "there is no hash of "+id, "")
		}
		lock[id] = map[string]string{}
		for platform, hash := range hashes.Value {
			if !platformRE.MatchString(platform) {
				doc.Fail(hash, fmt.Sprintf("%q is not a platform", platform), "write linux/amd64, darwin/arm64 or any")
			}
			if hash.Set() && !hashRE.MatchString(hash.Value) {
				doc.Fail(hash, fmt.Sprintf("%q is not a SHA-256", hash.Value), "64 digits of 0-9 and a-f")
			}
			lock[id][platform] = hash.Value
		}
	}
	return lock, doc.Err()
}

// Names reports whether the lock contains a plugin.
func (l Lock) Names(id string) bool { _, ok := l[id]; return ok }

// Allows reports whether the lock permits this hash of a plugin.
func (l Lock) Allows(id, hash string) bool {
	return slices.Contains(slices.Collect(maps.Values(l[id])), hash)
}

// hashes formats the permitted hashes for the user.
func (l Lock) hashes(id string) string {
	var all []string
	for _, platform := range slices.Sorted(maps.Keys(l[id])) {
		all = append(all, fmt.Sprintf("%.12s for %s", l[id][platform], platform))
	}
	return "it has " + strings.Join(all, ", ")
}

// Pin sets the hash of a plugin on a platform. AnyPlatform replaces the hashes of
// all platforms, and vice versa.
func (l Lock) Pin(id, platform, hash string) {
	if l[id] == nil || platform == AnyPlatform {
		l[id] = map[string]string{}
	}
	delete(l[id], AnyPlatform)
	l[id][platform] = hash
}

// Write writes the lock file of a repository. The directory .coven must exist.
func (l Lock) Write(root string) error {
	var b strings.Builder
	b.WriteString(lockHeader + "plugins:\n")
	for _, id := range slices.Sorted(maps.Keys(l)) {
		fmt.Fprintf(&b, "  %s:\n", id)
		for _, platform := range slices.Sorted(maps.Keys(l[id])) {
			fmt.Fprintf(&b, "    %s: %q\n", platform, l[id][platform])
		}
	}
	file := filepath.Join(root, LockFile)
	dir, err := filepath.EvalSymlinks(filepath.Dir(file))
	if err != nil {
		return fmt.Errorf("write %s: %w", LockFile, err)
	}
	if top, err := filepath.EvalSymlinks(root); err != nil || dir != filepath.Join(top, ".coven") {
		return errors.Join(fmt.Errorf("write %s: .coven is a link to another directory: %s", LockFile, dir), err)
	}
	if err := regularfile.Replace(filepath.Join(dir, filepath.Base(file)), []byte(b.String()), 0o644); err != nil {
		return fmt.Errorf("write %s: %w", LockFile, err)
	}
	return nil
}

// LockSchema returns the JSON Schema of the lock file.
func LockSchema() *schema.Schema {
	closed := func(s *schema.Schema) *schema.Schema {
		s.Type, s.AdditionalProperties = "object", schema.None()
		return s
	}
	least := 1
	hashes := closed(&schema.Schema{
		PatternProperties: map[string]*schema.Schema{platformRE.String(): {Type: "string", Pattern: hashRE.String()}},
		MinProperties:     &least,
	})
	plugins := closed(&schema.Schema{PatternProperties: map[string]*schema.Schema{idRE.String(): hashes}})
	return closed(&schema.Schema{PatternProperties: map[string]*schema.Schema{"^plugins$": plugins}})
}

// Pin records the current hashes of the project's plugins in the lock and reports
// whether the lock changed. It holds the lock of the trust store.
func Pin(root string, store *trust.Store, shown []Plugin, platform string) (changed bool, err error) {
	err = store.Alone(func() error {
		lock, err := ReadLock(root)
		if err != nil {
			return err
		}
		for _, p := range shown {
			if !p.Project || lock.Allows(p.ID(), p.SHA256) {
				continue
			}
			where := platform
			if p.Lines > 0 {
				where = AnyPlatform
			}
			lock.Pin(p.ID(), where, p.SHA256)
			changed = true
		}
		if !changed {
			return nil
		}
		return lock.Write(root)
	})
	return changed, err
}
