package isolation

import (
	"context"
	"errors"
	"strings"

	"github.com/coven-run/coven/worktree/internal/git"
	"github.com/coven-run/coven/worktree/internal/repo"
)

// TakePrivate copies objects of the private common directory, and the objects that they need, into the
// repository. It returns the types of the objects.
func TakePrivate(ctx context.Context, w *repo.Worktree, oids []string) (map[string]string, error) {
	if err := errors.Join(regainOwn(w), checkPrivateObjects(w)); err != nil {
		return nil, err
	}
	g, err := w.Repo.PlainGit()
	if err != nil {
		return nil, err
	}
	g.ObjectDir = PrivatePath(w, "objects")
	kinds, err := KindsOf(ctx, g, oids)
	if err != nil || len(kinds) == 0 {
		return kinds, err
	}
	refs, err := w.Repo.Git().Refs(ctx, "refs/")
	if err != nil {
		return nil, err
	}
	var wanted strings.Builder
	for oid := range kinds {
		wanted.WriteString(oid + "\n")
	}
	for _, ref := range refs {
		wanted.WriteString("^" + ref.Oid + "\n")
	}
	pack, err := g.Feed(ctx, []byte(wanted.String()), "pack-objects", "--quiet", "--revs", "--local", "--stdout")
	if err != nil {
		return nil, err
	}
	_, err = w.Repo.Git().Feed(ctx, pack, "unpack-objects", "-q", "--strict")
	return kinds, err
}

// KindsOf returns the types of those objects that exist, by object ID.
func KindsOf(ctx context.Context, g git.Repo, oids []string) (map[string]string, error) {
	kinds := map[string]string{}
	if len(oids) == 0 {
		return kinds, nil
	}
	out, err := g.Feed(ctx, []byte(strings.Join(oids, "\n")+"\n"), "cat-file", "--batch-check=%(objectname) %(objecttype)")
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(out)) {
		if oid, kind, _ := strings.Cut(strings.TrimSpace(line), " "); kind != "missing" {
			kinds[oid] = kind
		}
	}
	return kinds, nil
}
