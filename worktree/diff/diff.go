// Package diff compares worktrees, commits and trees, as lists of files and as patches.
package diff

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/coven-run/coven/worktree/internal/content"
	"github.com/coven-run/coven/worktree/internal/git"
	"github.com/coven-run/coven/worktree/internal/object"
	"github.com/coven-run/coven/worktree/internal/repo"
)

// A FileChange is one file of a Diff.
type FileChange struct {
	Path    string
	OldPath string // of a rename or copy, otherwise empty
	Status  string // A, C, D, M, R or T
	Added   int    // lines, 0 for a binary file
	Deleted int
	Binary  bool
}

// A Diff is the difference between two trees or commits.
type Diff struct {
	From, To string // the compared trees or commits
	// Patch is as from `git diff`, with NUL bytes as \x00. For binary files it has only their hashes and sizes.
	Patch string
	Files []FileChange
	// PatchID identifies the old and new content and mode of the changed files, independently of other
	// files. (`git patch-id` ignores the names of binary files, bytes after a NUL, and positions.)
	PatchID string // empty for an empty diff
}

// Of compares the start of the change with the current content of the worktree: committed, staged, unstaged
// and untracked files. target is a commit of the target.
func Of(ctx context.Context, w *repo.Worktree, target string) (Diff, error) {
	start, err := w.Start(ctx, target)
	if err != nil {
		return Diff{}, err
	}
	tree, err := content.Tree(ctx, w)
	if err != nil {
		return Diff{}, err
	}
	diff, err := diff(ctx, w.Repo, start.Commit, tree)
	if err != nil {
		return Diff{}, fmt.Errorf("diff of %s: %w", w.TaskID, err)
	}
	return diff, nil
}

// Parts returns the parts of the patch, in the order of Files.
func (d Diff) Parts() []string {
	parts := make([]string, 0, len(d.Files))
	rest := d.Patch
	for _, f := range d.Files {
		end := f.partEnd(rest)
		parts = append(parts, rest[:end])
		rest = rest[end:]
	}
	return parts
}

// partEnd returns the end of the file's part at the beginning of a patch.
func (f *FileChange) partEnd(patch string) int {
	end := sectionEnd(patch)
	if f.Status == "T" { // git shows a type change as a deletion and an addition
		end += sectionEnd(patch[end:])
	}
	return end
}

// sectionEnd returns the end of the first section of a patch.
func sectionEnd(patch string) int {
	// Lines of content begin with a space, + or -, and line feeds in names are quoted.
	if end := strings.Index(patch, "\ndiff --git "); end >= 0 {
		return end + 1
	}
	return len(patch)
}

// Of returns the parts of the patch for the given current or former paths.
func (d Diff) Of(paths ...string) string {
	var b strings.Builder
	for i, part := range d.Parts() {
		if i < len(d.Files) && (slices.Contains(paths, d.Files[i].Path) || d.Files[i].OldPath != "" && slices.Contains(paths, d.Files[i].OldPath)) {
			b.WriteString(part)
		}
	}
	return b.String()
}

// FilesIn lists the paths of the files in a commit's tree.
func FilesIn(ctx context.Context, r *repo.Repo, commit string) ([]string, error) {
	entries, err := r.Git().Entries(ctx, commit)
	if err != nil {
		return nil, fmt.Errorf("list the files of %s: %w", commit, err)
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Path
	}
	return names, nil
}

// Between returns the difference between two commits or trees.
func Between(ctx context.Context, r *repo.Repo, from, to string) (Diff, error) {
	diff, err := diff(ctx, r, from, to)
	if err != nil {
		return Diff{}, fmt.Errorf("diff of %s and %s: %w", from, to, err)
	}
	return diff, nil
}

func diff(ctx context.Context, r *repo.Repo, from, to string) (Diff, error) {
	d := Diff{From: from, To: to}
	files, err := compare(ctx, r, from, to)
	if err != nil || len(files) == 0 {
		return d, err
	}
	if d.PatchID, err = PatchID(ctx, r, from, to); err != nil {
		return d, err
	}
	if err := showHiddenText(ctx, r, from, to, files); err != nil {
		return d, err
	}
	sizes, err := sizesOf(ctx, r, files)
	if err != nil {
		return d, err
	}
	var b strings.Builder
	for _, f := range files {
		d.Files = append(d.Files, f.FileChange)
		b.WriteString(strings.ReplaceAll(f.part, "\x00", `\x00`))
		if f.Binary && f.old != f.new {
			fmt.Fprintf(&b, "Not shown because it is binary: %s before, %s after\n", sizes[f.old], sizes[f.new])
		}
	}
	d.Patch = b.String()
	return d, nil
}

// compared is a file of a diff with its part of the patch.
type compared struct {
	FileChange
	old, new string // object IDs, only zeros for a missing file
	part     string
}

// compare compares two trees with git.
func compare(ctx context.Context, r *repo.Repo, from, to string, options ...string) ([]compared, error) {
	args := git.DiffArgs("diff-tree", append([]string{"-r", "-M", "--full-index"}, options...)...)
	list, err := r.Git().Fields(ctx, slices.Concat(args, []string{"--raw", "--numstat", "-z", "--end-of-options", from, to})...)
	if err != nil {
		return nil, err
	}
	files, err := parseFiles(list)
	if err != nil || len(files) == 0 {
		return nil, err
	}
	patch, err := r.Git().Output(ctx, slices.Concat(args, []string{"-p", "--src-prefix=a/", "--dst-prefix=b/", "--end-of-options", from, to})...)
	if err != nil {
		return nil, err
	}
	rest := string(patch)
	for i := range files {
		end := files[i].partEnd(rest)
		files[i].part, rest = rest[:end], rest[end:]
	}
	return files, nil
}

// showHiddenText replaces the files whose lines git did not compare although they are text: they have a few NUL bytes,
// or an attribute.
func showHiddenText(ctx context.Context, r *repo.Repo, from, to string, files []compared) error {
	var oids []string
	for _, f := range files {
		if f.Binary && f.old != f.new {
			oids = append(oids, f.last())
		}
	}
	texts, err := r.Git().Texts(ctx, oids)
	if err != nil {
		return fmt.Errorf("read the changed files: %w", err)
	}
	if !slices.ContainsFunc(oids, func(oid string) bool { return texts[oid] }) {
		return nil
	}
	shown, err := compare(ctx, r, from, to, "--text")
	if err != nil {
		return err
	}
	for i, f := range files {
		if f.Binary && texts[f.last()] && len(shown) == len(files) && shown[i].Path == f.Path {
			files[i].part, files[i].Binary = shown[i].part, false
			files[i].Added, files[i].Deleted = countLines(shown[i].part)
		}
	}
	return nil
}

// countLines counts the added and deleted lines of a file's part of a patch. `--numstat --text` does not.
func countLines(part string) (added, deleted int) {
	inHunk := false
	for line := range strings.Lines(part) {
		switch {
		case strings.HasPrefix(line, "@@"):
			inHunk = true
		case strings.HasPrefix(line, "diff --git "):
			inHunk = false
		case inHunk && line[0] == '+':
			added++
		case inHunk && line[0] == '-':
			deleted++
		}
	}
	return added, deleted
}

// last returns the object ID of the new content, or of the old one of a deleted file.
func (c *compared) last() string {
	if c.Status == "D" {
		return c.old
	}
	return c.new
}

// sizesOf returns the sizes of the binary files as texts, by object ID.
func sizesOf(ctx context.Context, r *repo.Repo, files []compared) (map[string]string, error) {
	texts := map[string]string{}
	var oids []string
	for _, f := range files {
		for _, oid := range []string{f.old, f.new} {
			switch {
			case !f.Binary:
			case strings.Trim(oid, "0") == "":
				texts[oid] = "no file"
			default:
				oids = append(oids, oid)
			}
		}
	}
	sizes, err := r.Git().Sizes(ctx, oids)
	for oid, size := range sizes {
		texts[oid] = fmt.Sprintf("%d bytes", size)
	}
	return texts, err
}

// PatchID returns a hash of the old and new content and mode of each changed path. It is empty if nothing
// has changed.
func PatchID(ctx context.Context, r *repo.Repo, from, to string) (string, error) {
	changes, err := r.Git().Changes(ctx, from, to)
	if err != nil || len(changes) == 0 {
		return "", err
	}
	lines := make([]string, len(changes))
	for i, c := range changes { // in the format of git diff-tree --raw -z
		lines[i] = fmt.Sprintf(":%s %s %s %s %c\x00%s", c.OldMode, c.Mode, c.OldOid, c.Oid, c.Status, c.Path)
	}
	sum := sha256.Sum256([]byte(strings.Join(lines, "\x00")))
	return hex.EncodeToString(sum[:]), nil
}

// parseFiles parses the output of `--raw --numstat -z`: first all raw items, then all numbers, in the same
// order.
func parseFiles(fields []string) ([]compared, error) {
	var files []compared
	for len(fields) > 1 && strings.HasPrefix(fields[0], ":") {
		words := strings.Fields(fields[0])
		if len(words) != 5 {
			return nil, fmt.Errorf("git printed an unknown change %q", fields[0])
		}
		f := compared{FileChange: FileChange{Status: words[4][:1], Path: fields[1]}, old: words[2], new: words[3]}
		fields = fields[2:]
		if (f.Status == "R" || f.Status == "C") && len(fields) > 0 {
			f.OldPath, f.Path, fields = f.Path, fields[0], fields[1:]
		}
		files = append(files, f)
	}
	for i := range files {
		if len(fields) == 0 {
			return nil, fmt.Errorf("git printed no numbers for %q", files[i].Path)
		}
		words := strings.SplitN(fields[0], "\t", 3)
		if len(words) != 3 {
			return nil, fmt.Errorf("git printed unknown numbers %q", fields[0])
		}
		files[i].count(words[0], words[1])
		fields = fields[1:]
		if words[2] == "" && len(fields) >= 2 { // a rename: both names follow
			fields = fields[2:]
		}
	}
	return files, nil
}

func (f *FileChange) count(added, deleted string) {
	f.Binary = added == "-"
	f.Added, _ = strconv.Atoi(added)
	f.Deleted, _ = strconv.Atoi(deleted)
}

// ShowCommit returns the subject, tree and parents of a commit.
func ShowCommit(ctx context.Context, r *repo.Repo, commitish string) (CommitInfo, error) {
	c, err := r.Git().Commit(ctx, commitish)
	if err != nil {
		return CommitInfo{}, fmt.Errorf("show %s: %w", commitish, err)
	}
	return infoOf(c), nil
}

// CommitInfo describes a commit for display.
type CommitInfo struct {
	Oid, Tree, Subject string
	Parents            []string
}

func infoOf(c object.Commit) CommitInfo {
	subject, _, _ := strings.Cut(c.Message, "\n")
	return CommitInfo{Oid: c.Oid, Tree: c.Tree, Subject: subject, Parents: c.Parents}
}

// Added lists the paths of the files in a commit or tree that another one lacks.
func Added(ctx context.Context, r *repo.Repo, from, to string) ([]string, error) {
	changes, err := r.Git().Changes(ctx, from, to)
	if err != nil {
		return nil, fmt.Errorf("compare %.10s with %.10s: %w", from, to, err)
	}
	var paths []string
	for _, c := range changes {
		if c.Status == 'A' {
			paths = append(paths, c.Path)
		}
	}
	return paths, nil
}

// Paths lists the paths that differ between two commits or trees.
func Paths(ctx context.Context, r *repo.Repo, from, to string) ([]string, error) {
	changes, err := r.Git().Changes(ctx, from, to)
	if err != nil {
		return nil, fmt.Errorf("compare %.10s with %.10s: %w", from, to, err)
	}
	paths := make([]string, len(changes))
	for i, c := range changes {
		paths[i] = c.Path
	}
	return paths, nil
}
