package doctor

import (
	"context"

	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/worktree"
)

// privacy finds records that others can read, or that git would take into a commit.
func (v *visit) privacy(ctx context.Context) []Finding {
	root := v.house.Repo.Root
	var found []Finding
	exposed, err := session.Exposed(root)
	if err != nil {
		return bad("ls -lR "+session.Dir, "%v", err)
	}
	if exposed > 0 {
		f := odd("coven doctor --fix", "files and directories of records that others can read: %d", exposed)[0]
		f.mend = func(context.Context) (string, error) {
			return "only you can read them", session.MakePrivate(root)
		}
		found = append(found, f)
	}
	found = append(found, v.ignoring(ctx)...)
	if len(found) == 0 {
		return good("only you can read the records")
	}
	return found
}

// ignoring reports whether git leaves sessions out.
func (v *visit) ignoring(ctx context.Context) []Finding {
	root := v.house.Repo.Root
	state, err := worktree.CovenIgnore(root)
	switch {
	case err != nil:
		return bad("ls -l .coven", "%v", err)
	case state == worktree.IgnoreOld:
		f := odd("coven doctor --fix", ".coven/.gitignore is of an earlier coven: git does not ignore sessions, which hold what tools printed")[0]
		f.mend = func(context.Context) (string, error) {
			return ".coven/.gitignore ignores sessions; to commit them, remove its line sessions/", worktree.UpdateCovenIgnore(root)
		}
		return []Finding{f}
	case state != worktree.IgnoreChanged:
		return nil
	}
	ignored, err := v.house.Repo.Ignores(ctx, session.Dir)
	if err != nil || ignored {
		return nil // it is ignored elsewhere
	}
	return odd("echo sessions/ >> .coven/.gitignore", ".coven/.gitignore does not ignore sessions, which hold what tools printed")
}
