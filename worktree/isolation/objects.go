package isolation

import (
	"context"
	"errors"
	"strings"

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
	kinds, err := g.Kinds(ctx, oids)
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
