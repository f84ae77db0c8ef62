package doctor

import (
	"context"

	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/text/shellword"
	"github.com/coven-run/coven/worktree"
	"github.com/coven-run/coven/worktree/remote"
)

// privacy finds records that other users can read or that git does not ignore.
func (v *Examination) privacy(ctx context.Context) []Finding {
	root := v.project.Repo.Root
	var found []Finding
	exposed, err := session.Exposed(root)
	if err != nil {
		return fail("ls -lR "+session.Dir, "%v", err)
	}
	if exposed > 0 {
		f := warn("coven doctor --fix", "files and directories of records that others can read: %d", exposed)[0]
		f.fix = func(context.Context) (string, error) {
			return "only you can read them", session.MakePrivate(root)
		}
		found = append(found, f)
	}
	found = append(append(found, v.ignoring(ctx)...), v.packed()...)
	found = append(found, v.published(ctx)...)
	if len(found) == 0 {
		return ok("only you can read the records")
	}
	return found
}

// ignoring checks whether git ignores sessions.
func (v *Examination) ignoring(ctx context.Context) []Finding {
	ignored, err := worktree.SessionsIgnored(v.project.Repo.Root)
	if err != nil {
		return fail("ls -l .coven", "%v", err)
	}
	if ignored {
		return nil
	}
	ignored, err = v.project.Repo.Ignores(ctx, session.Dir)
	if err != nil || ignored {
		return nil // it is ignored elsewhere
	}
	return warn("echo sessions/ >> .coven/.gitignore", ".coven/.gitignore does not ignore sessions, which contain tool output")
}

// packed checks whether tools of the project copy the records to others.
func (v *Examination) packed() []Finding {
	root := v.project.Repo.Root
	tools, err := project.Packers(root)
	var found []Finding
	if err != nil {
		found = fail("ls -la "+shellword.Quote(root), "%v", err)
	}
	for _, tool := range tools {
		f := warn("coven doctor --fix", "%s .coven, with the records of sessions: %s does not leave it out", tool.Does, tool.Ignore)[0]
		f.fix = func(context.Context) (string, error) { return "added .coven/ to " + tool.Ignore, tool.LeaveOut(root) }
		found = append(found, f)
	}
	return found
}

// published checks whether git push would publish coven's refs.
func (v *Examination) published(ctx context.Context) []Finding {
	remotes, err := remote.Publishers(ctx, v.project.Repo)
	if err != nil {
		return fail(exit.Next(err), "%v", err)
	}
	var found []Finding
	for _, r := range remotes {
		key := shellword.Word("remote." + r.Name)
		setting, next := r.Push, "git config --add "+key+".push '"+remote.ExceptCoven+"'"
		if r.Mirror {
			setting, next = "mirror", "git config --unset-all "+key+".mirror"
		}
		found = append(found, warn(next, "git push %s publishes refs/coven, with unfinished work of tasks (%s)", r.Name, setting)...)
	}
	return found
}
