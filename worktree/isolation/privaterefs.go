package isolation

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coven-run/coven/worktree/internal/file"
	"github.com/coven-run/coven/worktree/internal/names"
	"github.com/coven-run/coven/worktree/internal/object"
	"github.com/coven-run/coven/worktree/internal/ref"
	"github.com/coven-run/coven/worktree/internal/repo"
)

// refs returns the refs of the repository. The value of a ref is an object ID, or "ref: NAME". It reads
// only the files that have changed since the last call.
func refs(ctx context.Context, r *repo.Repo) (map[string]string, error) {
	hooks, err := HookDirs(ctx, r) // the same state as for tripwire.Watch
	if err != nil {
		return nil, err
	}
	state, err := ReadState(ctx, r, hooks)
	return state.Refs, err
}

// tipNow is a cheaper w.Tip that first looks in refs.
func tipNow(ctx context.Context, w *repo.Worktree, refs map[string]string) (string, error) {
	if tip := refs[names.HeadsPrefix+w.Branch]; object.IsID(tip) {
		return tip, nil
	}
	return w.Tip(ctx)
}

// symbolic is the prefix of the value of a symbolic ref.
const symbolic = "ref: "

// Shared returns the refs to copy to the private common directory: all refs except coven's, those of other
// checkouts, and the task's branch, which is set separately.
func Shared(w *repo.Worktree, refs map[string]string) map[string]string {
	shared := make(map[string]string, len(refs))
	for name, to := range refs {
		if !strings.HasPrefix(name, "refs/") || name == names.HeadsPrefix+w.Branch || name == "refs/stash" || !isPlainName(name) {
			continue
		}
		if slices.ContainsFunc([]string{"refs/coven/", "refs/bisect/", "refs/worktree/", "refs/rewritten/"}, func(dir string) bool { return strings.HasPrefix(name, dir) }) {
			continue
		}
		if target, ok := strings.CutPrefix(to, symbolic); object.IsID(to) || ok && isPlainName(target) {
			shared[name] = to
		}
	}
	return shared
}

// isPlainName reports whether a name can be written to packed-refs. git ignores refs with other names.
func isPlainName(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(c rune) bool { return c <= ' ' || c == 0x7f })
}

// RefLines returns a line "NAME VALUE" for each ref, in git's order.
func RefLines(refs map[string]string) string {
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(refs)) {
		text.WriteString(name + " " + refs[name] + "\n")
	}
	return text.String()
}

// CopiedRefsPath returns the path of coven's record of the copied refs. The agent cannot write it.
func CopiedRefsPath(w *repo.Worktree) string { return w.StatePath("isolated-refs") }

func recordCopied(w *repo.Worktree, lines string) error {
	return file.WriteNoSync(CopiedRefsPath(w), []byte(lines))
}

// goneRefsPath returns the path of the record of copied refs that no longer exist in the repository.
func goneRefsPath(w *repo.Worktree) string { return w.StatePath("isolated-refs-gone") }

// recordGone appends the copied refs that no longer exist in the repository to their record.
func recordGone(w *repo.Worktree, before, refs map[string]string) error {
	gone := maps.Clone(before)
	maps.DeleteFunc(gone, func(name, _ string) bool { return refs[name] != "" })
	if len(gone) == 0 {
		return nil
	}
	raw, err := file.ReadIfExists(goneRefsPath(w))
	if err != nil {
		return err
	}
	return file.WriteNoSync(goneRefsPath(w), []byte(raw+RefLines(gone)))
}

// CopiedRefs returns the refs that were copied from the repository to the private common directory, as
// lines "NAME VALUE".
func CopiedRefs(w *repo.Worktree) (map[string]bool, error) {
	copied := map[string]bool{}
	for _, path := range []string{CopiedRefsPath(w), goneRefsPath(w)} {
		raw, err := file.ReadIfExists(path)
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(raw) {
			copied[strings.TrimSuffix(line, "\n")] = true
		}
	}
	return copied, nil
}

func copyRefs(w *repo.Worktree, refs map[string]string, to string) error {
	packed := strings.Builder{}
	packed.WriteString("# pack-refs with: sorted \n")
	for _, name := range slices.Sorted(maps.Keys(refs)) {
		if !strings.HasPrefix(refs[name], symbolic) {
			packed.WriteString(refs[name] + " " + name + "\n")
			continue
		}
		path := filepath.Join(to, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(refs[name]+"\n"), 0o644); err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(to, "packed-refs"), []byte(packed.String()), 0o644); err != nil {
		return err
	}
	return recordCopied(w, RefLines(refs))
}

// updateRefs copies the refs that have changed in the repository since the last copy to the private common
// directory. It does not change refs that the agent has changed or that conflict with the agent's refs, and
// does not delete refs that no longer exist in the repository.
func updateRefs(w *repo.Worktree, refs map[string]string) error {
	lines := RefLines(refs)
	raw, err := os.ReadFile(CopiedRefsPath(w))
	if err == nil && string(raw) == lines {
		return nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	before := map[string]string{}
	for line := range strings.Lines(string(raw)) {
		name, to, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		before[name] = to
	}
	packed, err := object.ReadPackedRefs(PrivatePath(w))
	if err != nil {
		return nil //nolint:nilerr // the agent's file, which git cannot read either
	}
	if err := recordGone(w, before, refs); err != nil {
		return err
	}
	for name, to := range refs {
		if before[name] == to {
			continue
		}
		if is := privateRef(w, name, packed); is == to || is != before[name] {
			continue
		}
		if err := putPrivateRef(w, name, to); err != nil {
			return err
		}
	}
	return recordCopied(w, lines)
}

// privateRef returns the value of a ref in the private common directory, or "" if it does not exist.
func privateRef(w *repo.Worktree, name string, packed map[string]string) string {
	value, err := object.ReadRef(PrivatePath(w), name, packed)
	switch {
	case errors.Is(err, ref.ErrNoRef):
		return ""
	case err != nil:
		return "unreadable: " + err.Error()
	}
	return value
}

// putPrivateRef writes a ref, unless another file or directory is in the way.
func putPrivateRef(w *repo.Worktree, name, to string) error {
	dir := PrivatePath(w)
	for _, part := range strings.Split(filepath.Dir(name), "/") {
		dir = filepath.Join(dir, part)
		if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		if info, err := os.Lstat(dir); err != nil || !info.IsDir() {
			return err
		}
	}
	path := PrivatePath(w, name)
	if info, err := os.Lstat(path); err == nil && info.IsDir() && !removed(path) { // git leaves empty directories
		return nil
	}
	return putFile(w, path, to+"\n")
}

// removed removes an empty directory. It reports whether it did.
func removed(dir string) bool { return os.Remove(dir) == nil }
