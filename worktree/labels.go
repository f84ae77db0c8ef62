package worktree

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/coven-run/coven/worktree/internal/git"
)

// A labelledMerge is a merge whose conflicts name branches.
type labelledMerge struct {
	tree         string
	ours, theirs string // the labels
	stages       []stage
	notes        []string
	moved        map[string]string // a name git made -> the path it is about
}

// A stage is one version of a path in conflict: 1 the common one, 2 the
// task's, 3 the target's.
type stage struct {
	side
	n    int
	path string
}

type side struct{ Mode, Oid string }

// paths are the paths in conflict, sorted.
func (m labelledMerge) paths() []string {
	var paths []string
	for _, s := range m.stages {
		paths = append(paths, s.path)
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// byPath groups the versions by path; index 0 is not used.
func (m labelledMerge) byPath() map[string][4]side {
	sides := map[string][4]side{}
	for _, s := range m.stages {
		all := sides[s.path]
		all[s.n] = s.side
		sides[s.path] = all
	}
	return sides
}

// submodules are the paths for which a side has a submodule.
func (m labelledMerge) submodules() []string {
	var paths []string
	for _, s := range m.stages {
		if s.Mode == git.ModeSubmodule {
			paths = append(paths, s.path)
		}
	}
	return slices.Compact(paths)
}

// origin is the path that a name made by git is about.
func (m labelledMerge) origin(name string) string {
	if p, known := m.moved[name]; known {
		return p
	}
	return name
}

// beside makes a name for the other version of a file, in the way git does.
func beside(p, label string, taken map[string]git.Entry) string {
	base := p + "~" + strings.ReplaceAll(label, "/", "_")
	name := base
	for i := 0; ; i++ {
		if _, is := taken[name]; !is {
			return name
		}
		name = base + "_" + strconv.Itoa(i)
	}
}

// mergeLabelled merges like Repo.merge, and also when there is a conflict. git
// labels conflicts with the names it was given, so it runs in a git directory
// where the branches have names and these commits.
func (w *Worktree) mergeLabelled(ctx context.Context, ix *index, ours, theirs, target string) (labelledMerge, error) {
	r := w.repo
	tree, err := r.withReserved(ctx, ours, theirs)
	if err != nil {
		return labelledMerge{}, err
	}
	prepared, err := r.makeCommit(ctx, tree, "coven: merge side\n", nil, ours)
	if err != nil {
		return labelledMerge{}, err
	}
	g, err := w.named(ctx, filepath.Join(ix.dir, "merge"), map[string]string{w.Branch: prepared, target: theirs})
	m := labelledMerge{ours: w.Branch, theirs: target}
	if err != nil { // a branch called HEAD, say: the merge matters, not its labels
		g, m.ours, m.theirs = r.git(), prepared, theirs
	}
	fields, err := g.Fields(ctx, "merge-tree", "--write-tree", "-z", "--messages", m.ours, m.theirs)
	if git.ExitCode(err) > 1 || git.ExitCode(err) < 0 {
		return m, err
	}
	if parseErr := m.parse(fields); parseErr != nil {
		return m, parseErr
	}
	if err != nil && len(m.stages) == 0 {
		return m, fmt.Errorf("git finds a conflict that is in no file: %s", strings.Join(m.notes, "; "))
	}
	return m, nil
}

// named makes a git directory with these branches and the repository's
// objects and settings.
func (w *Worktree) named(ctx context.Context, dir string, branches map[string]string) (git.Repo, error) {
	r := w.repo
	g := git.Repo{Dir: dir, WorkTree: r.Root, ObjectDir: filepath.Join(r.GitDir, "objects")}
	files := map[string]string{"HEAD": "ref: refs/heads/none\n", "config": r.rawConfig()}
	for branch, oid := range branches {
		files[headsPrefix+branch] = oid + "\n"
	}
	for _, name := range []string{"info/attributes", "shallow"} {
		content, err := readIfThere(filepath.Join(r.GitDir, name))
		if err != nil {
			return g, err
		}
		if content != "" {
			files[name] = content
		}
	}
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return g, err
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			return g, err
		}
	}
	for branch, oid := range branches {
		c, err := g.Commit(ctx, branch)
		if err != nil {
			return g, err
		}
		if c.Oid != oid {
			return g, fmt.Errorf("%q names %s, not %s", branch, c.Oid, oid)
		}
	}
	return g, nil
}

// parse reads the output of merge-tree: the tree, the stages, and after an
// empty item the messages, each as a count, that many paths, kind and text.
func (m *labelledMerge) parse(fields []string) error {
	if len(fields) == 0 || fields[0] == "" {
		return errors.New("git merge-tree printed no tree")
	}
	m.tree, m.moved = fields[0], map[string]string{}
	rest := fields[1:]
	for ; len(rest) > 0 && rest[0] != ""; rest = rest[1:] {
		s, err := parseStage(rest[0])
		if err != nil {
			return err
		}
		m.stages = append(m.stages, s)
	}
	m.parseNotes(rest[min(1, len(rest)):])
	return nil
}

// parseNotes stops where git prints free text, as it does about submodules.
func (m *labelledMerge) parseNotes(rest []string) {
	for len(rest) > 0 {
		n, err := strconv.Atoi(rest[0])
		if err != nil || n < 0 || len(rest) < n+3 {
			return
		}
		m.note(rest[1:n+1], rest[n+1], rest[n+2])
		rest = rest[n+3:]
	}
}

func (m *labelledMerge) note(paths []string, kind, text string) {
	if !strings.HasPrefix(kind, "CONFLICT") {
		return
	}
	m.notes = append(m.notes, strings.TrimSpace(text))
	for _, name := range paths {
		for _, p := range paths {
			if strings.HasPrefix(name, p+"~") {
				m.moved[name] = p
			}
		}
	}
}

// parseStage reads "mode oid n\tpath".
func parseStage(field string) (stage, error) {
	meta, name, found := strings.Cut(field, "\t")
	words := strings.Fields(meta)
	if !found || len(words) != 3 || len(words[2]) != 1 || words[2] < "1" || words[2] > "3" {
		return stage{}, fmt.Errorf("git merge-tree printed an unknown conflict %q", field)
	}
	return stage{side: side{Mode: words[0], Oid: words[1]}, n: int(words[2][0] - '0'), path: name}, nil
}
