package rescue

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/coven-run/coven/worktree/internal/content"
	"github.com/coven-run/coven/worktree/internal/git"
	"github.com/coven-run/coven/worktree/internal/names"
	"github.com/coven-run/coven/worktree/internal/object"
	"github.com/coven-run/coven/worktree/internal/repo"
	"github.com/coven-run/coven/worktree/internal/suspect"
)

// A Private collects the private part of a rescue: content that may be secret, and that a ref of the repository would
// publish with `git push --mirror`.
type Private struct {
	repo    *repo.Repo
	git     git.Repo
	entries []object.Entry
}

// NewPrivate returns an empty private part.
func NewPrivate(r *repo.Repo) (*Private, error) {
	g, err := content.PrivateGit(r)
	return &Private{repo: r, git: g}, err
}

// Add adds a file.
func (p *Private) Add(ctx context.Context, path string, text []byte) error {
	oid, err := p.git.Blob(ctx, text)
	p.entries = append(p.entries, object.Entry{Mode: "100644", Oid: oid, Path: path})
	return err
}

// addFiles adds files of a worktree: path in the rescue -> absolute path.
func (p *Private) addFiles(ctx context.Context, w *repo.Worktree, files map[string]string) error {
	entries, err := blobs(ctx, w, p.git, files)
	p.entries = append(p.entries, entries...)
	return err
}

// takeSecrets adds the new and changed files of a worktree that look like secrets, and returns its staged tree without
// them: with the files of the branch in their places.
func (p *Private) takeSecrets(ctx context.Context, w *repo.Worktree, tree string) (string, error) {
	g := w.Repo.Git()
	tip, err := w.TipIfAny(ctx)
	if err != nil {
		return "", err
	}
	had := map[string]object.Entry{}
	if tip == "" {
		tip, err = treeOf(ctx, w.Repo, "")
	} else {
		had, err = content.EntriesByPath(ctx, w, tip)
	}
	if err != nil {
		return "", err
	}
	changes, err := g.Changes(ctx, tip, tree)
	if err != nil {
		return "", err
	}
	secret, err := suspect.Find(ctx, g, changes, nil)
	if err != nil || len(secret) == 0 {
		return tree, err
	}
	files := map[string]string{}
	var edits []object.Entry
	for name := range secret {
		files[name] = filepath.Join(w.Path, name)
		before, tracked := had[name]
		if !tracked {
			before = object.Entry{Mode: "0", Path: name}
		}
		edits = append(edits, before)
	}
	if err := p.addFiles(ctx, w, files); err != nil {
		return "", err
	}
	return content.EditTree(ctx, &repo.Worktree{Repo: w.Repo, Name: content.ScratchName}, g, tree, edits)
}

// BundleName is the name of the commits in a rescue, in the format of `git bundle`.
const BundleName = GitDirName + "/commits.bundle"

// addCommits adds a bundle of the commits of work in a git directory. They may contain secrets: `git stash --all` makes a
// commit of ignored files.
func (p *Private) addCommits(ctx context.Context, own GitWork) error {
	if len(own.commits) == 0 {
		return nil
	}
	var bundle, wanted strings.Builder
	if p.repo.Format == "sha256" {
		bundle.WriteString("# v3 git bundle\n@object-format=sha256\n")
	} else {
		bundle.WriteString("# v2 git bundle\n")
	}
	for _, oid := range own.bases {
		bundle.WriteString("-" + oid + "\n")
		wanted.WriteString("^" + oid + "\n")
	}
	for _, oid := range own.commits {
		bundle.WriteString(oid + " refs/rescued/" + oid + "\n")
		wanted.WriteString(oid + "\n")
	}
	pack, err := p.repo.Git().Feed(ctx, []byte(wanted.String()), "pack-objects", "--quiet", "--revs", "--stdout")
	if err != nil {
		return fmt.Errorf("store commits that no ref keeps: %w", err)
	}
	bundle.WriteString("\n")
	bundle.Write(pack)
	return p.Add(ctx, BundleName, []byte(bundle.String()))
}

// addWork adds the files, the staged entries and the commits of work in a git directory.
func (p *Private) addWork(ctx context.Context, w *repo.Worktree, own GitWork) error {
	if err := p.addFiles(ctx, w, own.files); err != nil {
		return err
	}
	for _, e := range own.staged {
		text, err := w.Repo.Git().Output(ctx, "cat-file", "blob", e.Oid)
		if err == nil {
			e.Oid, err = p.git.Blob(ctx, text)
		}
		if err != nil {
			return fmt.Errorf("store the staged file %s: %w", e.Path, err)
		}
		p.entries = append(p.entries, e)
	}
	return p.addCommits(ctx, own)
}

// Store stores the part and returns its commit, or "" if the part is empty.
func (p *Private) Store(ctx context.Context) (string, error) {
	tree, err := p.Tree(ctx)
	if err != nil || tree == "" {
		return "", err
	}
	g := p.git
	g.Env = append(g.Env, repo.CovenIdentity()...)
	commit, err := g.StoreCommit(ctx, git.NewCommit{Tree: tree, Message: "private part of a rescue\n"})
	if err == nil {
		err = g.Run(ctx, "update-ref", names.PrivatePrefix+commit, commit)
	}
	if err != nil {
		return "", fmt.Errorf("store the private part of a rescue: %w", err)
	}
	return commit, nil
}

// Tree stores the files and returns their tree, or "" if there are none.
func (p *Private) Tree(ctx context.Context) (string, error) {
	if len(p.entries) == 0 {
		return "", nil
	}
	scratch := &repo.Worktree{Repo: p.repo, Name: content.ScratchName}
	tree, err := content.EditTree(ctx, scratch, p.git, "", p.entries)
	if err != nil {
		return "", fmt.Errorf("store the private part of a rescue: %w", err)
	}
	return tree, nil
}

// A Part is a commit with files of a rescue, and the repository that contains it.
type Part struct {
	Git    git.Repo
	Commit string
}

// ErrPartGone means that the private part of a rescue was deleted by hand.
var ErrPartGone = errors.New("its private part, with ignored files and the content of git directories, does not exist in .git/coven/private any more")

// Parts returns the parts of a rescue: the one in the repository, and the private one if there is one. If that is gone,
// the error is ErrPartGone, and the first part is returned all the same.
func Parts(ctx context.Context, r *repo.Repo, info Info) ([]Part, error) {
	g, err := r.PlainGit()
	if err != nil {
		return nil, err
	}
	parts := []Part{{g, info.Commit}}
	if info.Private == "" {
		return parts, nil
	}
	if g, err = content.PrivateGit(r); err != nil {
		return parts, err
	}
	has, err := g.HasCommit(ctx, info.Private)
	if err == nil && !has {
		err = fmt.Errorf("%s: %w", info.Ref, ErrPartGone)
	}
	if err != nil {
		return parts, err
	}
	return append(parts, Part{g, info.Private}), nil
}

// WithoutPart returns the rescues whose private part was deleted by hand, or is damaged. It returns none of a shared
// repository, where parts that cannot be read may be those of other users.
func WithoutPart(ctx context.Context, r *repo.Repo) ([]Info, error) {
	all, err := All(ctx, r)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(info Info) bool { return info.Private == "" })
	if len(all) == 0 || r.Sharing.On() {
		return nil, nil
	}
	g, err := content.PrivateGit(r)
	if err != nil {
		return nil, err
	}
	var parts []string
	for _, info := range all {
		parts = append(parts, info.Private)
	}
	kinds, err := g.Kinds(ctx, parts)
	return slices.DeleteFunc(all, func(info Info) bool { return kinds[info.Private] != "" }), err
}

// DropUnused deletes the private parts that no rescue has, except new ones, whose rescue may not exist yet.
func DropUnused(ctx context.Context, r *repo.Repo) error {
	g, err := content.PrivateGit(r)
	if err != nil {
		return err
	}
	refs, err := g.Refs(ctx, names.PrivatePrefix)
	if err != nil || len(refs) == 0 {
		return err
	}
	all, err := All(ctx, r)
	if err != nil {
		return err
	}
	used := map[string]bool{}
	for _, info := range all {
		used[info.Private] = true
	}
	dropped := false
	for _, part := range refs {
		if used[part.Oid] {
			continue
		}
		c, err := g.Commit(ctx, part.Oid)
		if err != nil {
			return err
		}
		if time.Since(c.Time) < partAge {
			continue
		}
		if err := g.Run(ctx, "update-ref", "-d", part.Name, part.Oid); err != nil {
			return err
		}
		dropped = true
	}
	if !dropped {
		return nil
	}
	return g.Run(ctx, "prune", "--expire="+time.Now().Add(-partAge).Format(time.RFC3339))
}

// partAge is the age of a private part from which its rescue exists, unless it was deleted.
const partAge = 24 * time.Hour
