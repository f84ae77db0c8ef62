package workspace

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coven-run/coven/internal/driver"
	"github.com/coven-run/coven/internal/file/regularfile"
	"github.com/coven-run/coven/internal/process"
	"github.com/coven-run/coven/internal/process/reads"
	"github.com/coven-run/coven/internal/sandbox"
	"github.com/coven-run/coven/worktree/files"
)

// maxPasses limits the number of stored passes of a command, maxCommands that of commands, and maxPass the size of a pass.
const (
	maxPasses   = 16
	maxCommands = 64
	maxPass     = 64 << 20
)

// A pass is a command that succeeded in a session, and everything that its result may depend on: see package reads.
type pass struct {
	Session string          `json:"session"`
	Inputs  json.RawMessage `json:"inputs"`
}

// passes returns the directory of the stored passes of a command with the present environment. There is a file for each task.
func (s *Workspace) passes(command string) string {
	sum := sha256.New()
	_, _ = fmt.Fprintf(sum, "%s\x00%s\x00", s.Repo.Root, command)
	for _, kv := range slices.Sorted(slices.Values(s.inWorktree(driver.Environment(s.Environ(), s.Pass)))) {
		if !strings.HasPrefix(kv, "COVEN_") {
			_, _ = fmt.Fprintf(sum, "%s\x00", strings.ReplaceAll(kv, s.Worktree.Path, "."))
		}
	}
	return filepath.Join(s.Repo.OwnStatePath("passes"), hex.EncodeToString(sum.Sum(nil)))
}

// passedBefore returns the session in which a command passed with the inputs that it would have now. It returns "" if there is
// none.
func (s *Workspace) passedBefore(ctx context.Context, command string) (string, error) {
	dir := s.passes(command)
	for _, entry := range latest(dir, s.Worktree.Name) {
		var p pass
		data, err := regularfile.ReadIn(dir, entry, maxPass)
		if err != nil || json.Unmarshal(data, &p) != nil {
			continue // it is being replaced, or is damaged
		}
		exit, output, err := s.RunWith(ctx, sandbox.Access{Apart: true}, process.Spec{
			Argv: s.Launcher.Compare(), Dir: s.Worktree.Path, Input: p.Inputs, Pipe: true,
		})
		if err != nil {
			return "", err
		}
		if exit.OK() && len(bytes.TrimSpace(output)) == 0 {
			return p.Session, nil
		}
	}
	return "", nil
}

// latest returns the names in a directory: first one of them, then the latest ones.
func latest(dir, first string) []string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	changed := map[string]int64{}
	var names []string
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil {
			names, changed[entry.Name()] = append(names, entry.Name()), info.ModTime().UnixNano()
		}
	}
	changed[first] = math.MaxInt64
	slices.SortFunc(names, func(a, b string) int { return cmp.Compare(changed[b], changed[a]) })
	return names
}

// keepPass stores the inputs of a command that has passed. It removes the oldest ones if there are too many. It stores nothing if
// the command has written files that git does not ignore, as a generator does: although they are the same now, their earlier
// contents may have mattered, and are not recorded.
func (s *Workspace) keepPass(ctx context.Context, command string, inputs []byte) error {
	made, err := reads.Made(inputs)
	if err != nil {
		return err
	}
	listing, err := files.List(ctx, s.Worktree)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(made, func(path string) bool { _, listed := slices.BinarySearch(listing.Files, path); return listed }) {
		return nil
	}
	dir := s.passes(command)
	data, err := json.Marshal(pass{Session: s.Session.ID, Inputs: inputs})
	if err == nil {
		err = os.MkdirAll(dir, 0o700)
	}
	if err == nil {
		err = regularfile.Replace(filepath.Join(dir, s.Worktree.Name), data, 0o600)
	}
	if err != nil {
		return fmt.Errorf("store the inputs of a check: %w", err)
	}
	return errors.Join(limit(dir, s.Worktree.Name, maxPasses), limit(filepath.Dir(dir), filepath.Base(dir), maxCommands))
}

// limit removes all but the latest entries of a directory.
func limit(dir, first string, count int) error {
	names := latest(dir, first)
	for _, name := range names[min(len(names), count):] {
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			return fmt.Errorf("remove the inputs of a check: %w", err)
		}
	}
	return nil
}
