package object

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/coven-run/coven/internal/text/lazyregexp"
	"github.com/coven-run/coven/worktree/internal/file"
)

// Limits for reading an agent's git directory.
const (
	MaxGitFile    = 4 << 10
	MaxPackedRefs = 16 << 20
)

// OidRE matches the ID of an object.
var OidRE = lazyregexp.New(`^([0-9a-f]{40}|[0-9a-f]{64})$`)

// ReadPackedRefs reads the packed refs of a git directory that an agent controls. It returns the object IDs
// by full ref name.
func ReadPackedRefs(dir string) (map[string]string, error) {
	raw, err := file.Read(filepath.Join(dir, "packed-refs"), MaxPackedRefs)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	refs := map[string]string{}
	for line := range strings.Lines(string(raw)) {
		if oid, name, found := strings.Cut(strings.TrimSuffix(line, "\n"), " "); found && OidRE.MatchString(oid) {
			refs[name] = oid
		}
	}
	return refs, nil
}
