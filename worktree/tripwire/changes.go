package tripwire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/coven-run/coven/worktree/internal/content"
	"github.com/coven-run/coven/worktree/internal/git"
	"github.com/coven-run/coven/worktree/internal/object"
	"github.com/coven-run/coven/worktree/internal/protected"
	"github.com/coven-run/coven/worktree/internal/repo"
	"github.com/coven-run/coven/worktree/rescue"
)

// The commit of a rescue of changes has a tree with these files: the manifest, with the changes; below
// before and after, the files, and a list of refs named "refs"; below objects, objects that a tree cannot
// contain otherwise, such as tags. The contents of configuration and hooks are in the private part. Commits that refs pointed to are its parents, so that git gc does not
// remove them.
const (
	manifestFile = "changes.json"
	beforeDir    = "before"
	afterDir     = "after"
	objectsDir   = "objects"
	refsFile     = "refs"
	maxParents   = 200 // of one commit; if there are more, they become parents of its parents
)

// manifest is changes.json.
type manifest struct {
	Changes []Change `json:"changes"`
}

// storeChangesOf stores both states of all changes and returns the ref.
func storeChangesOf(ctx context.Context, w *repo.Worktree, changes []Change, note string) (string, error) {
	info, err := storeChanges(ctx, w.Repo, w.TaskID, changes, note)
	if err != nil {
		return "", fmt.Errorf("store what changed: %w", err)
	}
	return info.Ref, nil
}

func storeChanges(ctx context.Context, r *repo.Repo, taskID string, changes []Change, note string) (rescue.Info, error) {
	info := rescue.Info{Task: taskID, Note: note, Time: time.Now(), Changes: true}
	g, err := r.PlainGit()
	if err != nil {
		return info, err
	}
	private, err := rescue.NewPrivate(r)
	if err != nil {
		return info, err
	}
	s := &storing{repo: r, git: g, private: private}
	if err := s.add(ctx, changes); err != nil {
		return info, err
	}
	scratch := &repo.Worktree{Repo: r, Name: content.ScratchName}
	tree, err := content.EditTree(ctx, scratch, g, "", s.entries)
	if err != nil {
		return info, err
	}
	secret, err := private.Tree(ctx)
	if err != nil {
		return info, err
	}
	if same, found := alreadyStored(ctx, r, taskID, tree, secret); found {
		return same, nil
	}
	if info.Private, err = private.Store(ctx); err != nil {
		return info, err
	}
	info.Commit, err = s.commit(ctx, tree, info.Message(rescue.ChangesSubject, taskID))
	if err != nil {
		return info, err
	}
	return rescue.AddRef(ctx, r, g, taskID, info)
}

// alreadyStored finds the rescue that coven stored before it was killed, by the trees of its parts.
func alreadyStored(ctx context.Context, r *repo.Repo, taskID string, trees ...string) (rescue.Info, bool) {
	g, err := r.PlainGit()
	if err != nil {
		return rescue.Info{}, false
	}
	all, err := rescue.ListIn(ctx, g, taskID)
	if err != nil || len(all) == 0 {
		return rescue.Info{}, false
	}
	last := all[len(all)-1]
	parts, err := rescue.Parts(ctx, r, last)
	stored := make([]string, len(trees))
	for i, part := range parts {
		c, commitErr := part.Git.Commit(ctx, part.Commit)
		stored[i], err = c.Tree, errors.Join(err, commitErr)
	}
	return last, err == nil && last.Changes && slices.Equal(stored, trees)
}

// storing collects the entries of a tree.
type storing struct {
	repo    *repo.Repo
	git     git.Repo
	private *rescue.Private // the contents of configuration and hooks
	entries []object.Entry
	parents []string
}

func (s *storing) add(ctx context.Context, changes []Change) error {
	if err := s.refs(ctx, changes); err != nil {
		return err
	}
	var stored []Change
	for _, c := range changes {
		if c.Kind != protected.Ref {
			for dir, v := range map[string]*protected.Value{beforeDir: &c.Before, afterDir: &c.After} {
				if err := s.file(ctx, c, dir, v); err != nil {
					return err
				}
			}
		}
		stored = append(stored, c)
	}
	raw, err := json.MarshalIndent(manifest{Changes: stored}, "", " ")
	if err != nil {
		return err
	}
	return s.blob(ctx, manifestFile, raw)
}

// file adds one state of a file, and removes its content from the manifest.
func (s *storing) file(ctx context.Context, c Change, dir string, v *protected.Value) error {
	content := v.Content
	v.Content = nil
	switch {
	case !v.Exists():
		return nil
	case c.Kind == protected.Checkout, c.Kind == protected.Sibling, c.Kind == protected.Index:
		oid, _, _ := strings.Cut(v.Text, " ")
		s.entries = append(s.entries, object.Entry{Mode: v.Mode, Oid: oid, Path: storedPath(c, dir)})
		return nil
	case content == nil && strings.HasPrefix(v.Text, "sha256:"):
		content = []byte{}
	case content == nil:
		return nil
	}
	return s.private.Add(ctx, storedPath(c, dir), content)
}

// storedPath returns the path of a file in the tree: before/git/hooks/pre-commit.
func storedPath(c Change, dir string) string {
	place := string(c.In)
	switch {
	case c.Kind == protected.Sibling:
		place = "worktrees/" + c.Task
	case c.Kind != protected.Config && c.Kind != protected.Hook:
		place = string(c.Kind)
	case place == "":
		place = "elsewhere"
	}
	var safe []string // git refuses these names in a tree
	for part := range strings.SplitSeq(strings.Trim(c.Name, "/"), "/") {
		switch strings.ToLower(part) {
		case "", ".", "..", ".git", "git~1":
			part = "dot-" + strings.ReplaceAll(part, ".", "")
		}
		safe = append(safe, part)
	}
	return dir + "/" + place + "/" + strings.Join(safe, "/")
}

func (s *storing) blob(ctx context.Context, path string, content []byte) error {
	oid, err := s.git.Blob(ctx, content)
	s.entries = append(s.entries, object.Entry{Mode: "100644", Oid: oid, Path: path})
	return err
}

// refs adds the lists of refs, and the objects that they pointed to.
func (s *storing) refs(ctx context.Context, changes []Change) error {
	var before, after strings.Builder
	var oids []string
	for _, c := range changes {
		if c.Kind != protected.Ref {
			continue
		}
		for list, v := range map[*strings.Builder]protected.Value{&before: c.Before, &after: c.After} {
			if v.Exists() {
				fmt.Fprintf(list, "%s %s\n", v.Text, c.Name)
			}
			if object.IsID(v.Text) {
				oids = append(oids, v.Text)
			}
		}
	}
	for dir, list := range map[string]*strings.Builder{beforeDir: &before, afterDir: &after} {
		if list.Len() > 0 {
			if err := s.blob(ctx, dir+"/"+refsFile, []byte(list.String())); err != nil {
				return err
			}
		}
	}
	slices.Sort(oids)
	return s.objects(ctx, slices.Compact(oids))
}

// objects stores existing objects: commits as parents, others in the tree.
func (s *storing) objects(ctx context.Context, oids []string) error {
	kinds, err := s.git.Kinds(ctx, oids)
	if err != nil {
		return err
	}
	for _, oid := range oids {
		switch kind := kinds[oid]; kind {
		case "commit":
			s.parents = append(s.parents, oid)
		case "blob":
			s.entries = append(s.entries, object.Entry{Mode: "100644", Oid: oid, Path: objectsDir + "/" + oid})
		case "tag", "tree":
			raw, err := s.git.Output(ctx, "cat-file", kind, oid)
			if err != nil {
				return err
			}
			if err := s.blob(ctx, objectsDir+"/"+oid+"."+kind, raw); err != nil {
				return err
			}
			if to, err := s.git.Line(ctx, "rev-parse", "--verify", "--quiet", oid+"^{commit}"); err == nil {
				s.parents = append(s.parents, to)
			}
		}
	}
	return nil
}

// commit creates the commit with coven's identity, because an agent may have changed the configuration.
func (s *storing) commit(ctx context.Context, tree, message string) (string, error) {
	g := s.git
	g.Env = append(g.Env, repo.CovenIdentity()...)
	if s.repo.Redact != nil {
		message = s.repo.Redact(message)
	}
	commit := func(text string, parents []string) (string, error) {
		return g.StoreCommit(ctx, git.NewCommit{Tree: tree, Message: git.CleanMessage(text), Parents: parents})
	}
	slices.Sort(s.parents)
	parents := slices.Compact(s.parents)
	for len(parents) > maxParents {
		var above []string
		for chunk := range slices.Chunk(parents, maxParents) {
			oid, err := commit("commits of refs", chunk)
			if err != nil {
				return "", err
			}
			above = append(above, oid)
		}
		parents = above
	}
	return commit(message, parents)
}

// RescuedChanges returns the changes in a rescue, with the contents of files.
func RescuedChanges(ctx context.Context, r *repo.Repo, info rescue.Info) ([]Change, error) {
	parts, err := rescue.Parts(ctx, r, info)
	if err != nil {
		return nil, err
	}
	raw, err := parts[0].Git.File(ctx, info.Commit, manifestFile)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", info.Ref, err)
	}
	var m manifest
	if err := json.Unmarshal(raw, &m); err != nil {
		return nil, fmt.Errorf("read %s: %w", info.Ref, err)
	}
	for i := range m.Changes {
		for dir, v := range map[string]*protected.Value{beforeDir: &m.Changes[i].Before, afterDir: &m.Changes[i].After} {
			if err := readStored(ctx, parts[len(parts)-1], m.Changes[i], dir, v); err != nil {
				return nil, err
			}
		}
	}
	return m.Changes, nil
}

// readStored reads the content of one state of a configuration file or hook.
func readStored(ctx context.Context, part rescue.Part, c Change, dir string, v *protected.Value) error {
	if !v.Exists() || c.Kind != protected.Config && c.Kind != protected.Hook {
		return nil
	}
	content, err := part.Git.File(ctx, part.Commit, storedPath(c, dir))
	if git.ExitCode(err) > 0 {
		return nil // the file was unreadable or too large
	}
	v.Content = content
	return err
}
