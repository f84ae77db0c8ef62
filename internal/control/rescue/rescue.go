// Package rescue finds the work that coven stored before it removed or undid something, and restores it.
package rescue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/task"
	"github.com/coven-run/coven/internal/text/shellword"
	"github.com/coven-run/coven/worktree/rescue"
	"github.com/coven-run/coven/worktree/tripwire"
)

// Stored is a rescue: work that coven stored.
type Stored struct {
	Name    string // for commands: TASK#N, or the ref if the task is unknown
	Task    string // its ID
	Ref     string
	Note    string
	Time    time.Time
	Changes bool // whether it has changes of the repository rather than the files of a worktree

	info rescue.Info
}

func newStored(info rescue.Info) Stored {
	r := Stored{Name: info.Ref, Task: info.Task, Ref: info.Ref, Note: info.Note, Time: info.Time, Changes: info.Changes, info: info}
	if info.Task != "" {
		r.Name = fmt.Sprintf("%s#%d", info.Task, info.N)
	}
	return r
}

// List returns the rescues of the named task, or of all tasks if name is empty, oldest first.
func List(ctx context.Context, p *project.Project, name string) ([]Stored, error) {
	var infos []rescue.Info
	var err error
	if name == "" {
		infos, err = rescue.All(ctx, p.Repo)
	} else {
		infos, err = rescuesOf(ctx, p, name)
	}
	var all []Stored
	for _, info := range infos {
		all = append(all, newStored(info))
	}
	return all, err
}

// rescuesOf returns the rescues of the named task.
func rescuesOf(ctx context.Context, p *project.Project, name string) ([]rescue.Info, error) {
	all, err := rescue.List(ctx, p.Repo, name)
	if err != nil || len(all) > 0 {
		return all, err
	}
	id, err := p.Resolve(ctx, name, project.Known)
	none := (*project.NoSessionError)(nil)
	switch {
	case errors.As(err, &none):
		return nil, exit.Failedf("coven rescue list", "nothing is stored for task %s%s", name, none.Hint())
	case errors.Is(err, task.ErrNotFound):
		return nil, exit.Failedf("coven rescue list", "nothing is stored for task %s", name)
	case err != nil:
		return nil, err
	}
	return rescue.List(ctx, p.Repo, id)
}

// Find returns the rescue with a name: its ref, TASK#N, or TASK for the newest one of the task.
func Find(ctx context.Context, p *project.Project, name string) (Stored, error) {
	if ref := strings.TrimPrefix(name, "refs/"); strings.HasPrefix(ref, "coven/rescue/") {
		info, err := rescue.Find(ctx, p.Repo, "refs/"+ref)
		if errors.Is(err, rescue.ErrNone) {
			err = exit.Failedf("coven rescue list", "%s does not exist", name)
		}
		return newStored(info), err
	}
	id, number, numbered := cutLast(name, "#")
	n, err := strconv.Atoi(number)
	if numbered && err != nil {
		id, numbered = name, false // the ID of a task may contain #
	}
	all, err := rescuesOf(ctx, p, id)
	if err != nil {
		return Stored{}, err
	}
	for _, info := range slices.Backward(all) {
		if !numbered || info.N == n {
			return newStored(info), nil
		}
	}
	return Stored{}, exit.Failedf("coven rescue list", "nothing is stored as %s", name)
}

// cutLast cuts a text around the last separator.
func cutLast(text, separator string) (before, after string, found bool) {
	at := strings.LastIndex(text, separator)
	if at < 0 {
		return text, "", false
	}
	return text[:at], text[at+len(separator):], true
}

// maxPatch is the maximum size in bytes of the patch of a Content.
const maxPatch = 256 << 10

// Content is the content of a rescue.
type Content struct {
	Changes []string // changes of the repository, such as "branch main was deleted"
	Patch   string   // from the old contents to the new ones
	Cut     bool     // the patch was cut
	Files   []File   // of a worktree
}

// File is a file of a stored worktree.
type File struct {
	Path   string
	Status byte // A, M, D or T if it differs from the branch, otherwise a space
}

// ContentOf returns the content of a rescue.
func ContentOf(ctx context.Context, p *project.Project, r Stored) (Content, error) {
	var c Content
	if !r.Changes {
		files, err := rescue.Files(ctx, p.Repo, r.info)
		for _, f := range files {
			c.Files = append(c.Files, File(f))
		}
		return c, err
	}
	changes, err := tripwire.RescuedChanges(ctx, p.Repo, r.info)
	if err != nil {
		return c, err
	}
	for _, change := range changes {
		c.Changes = append(c.Changes, change.String())
	}
	patch, cut, err := tripwire.RescuedPatch(ctx, p.Repo, r.info, maxPatch)
	c.Patch, c.Cut = string(patch), cut
	return c, err
}

// Restore undoes the changes of a rescue. It returns the rescue that undoes Restore; its Ref is empty if
// there was nothing to undo. If something has changed again since, it restores nothing and returns an
// error.
func Restore(ctx context.Context, p *project.Project, r Stored) (undo Stored, err error) {
	info, err := tripwire.Undo(ctx, p.Repo, r.info)
	if refused := (*tripwire.UnrestorableError)(nil); errors.As(err, &refused) {
		err = exit.Personf("coven rescue show "+shellword.Word(r.Name), "%w", err)
	}
	return newStored(info), err
}

// BundleName is the name of the commits that no branch had, in the directory of a restored worktree.
const BundleName = rescue.BundleName

// Export checks the files of a stored worktree out into a new directory.
func Export(ctx context.Context, p *project.Project, r Stored, dir string) error {
	err := rescue.Export(ctx, p.Repo, r.info, dir)
	switch {
	case errors.Is(err, rescue.ErrNotEmpty):
		err = exit.Usagef("give a directory that does not exist", "%w", err)
	case errors.Is(err, rescue.ErrPartGone):
		err = exit.Failedf("ls "+shellword.Word(dir), "the other files are restored: %w", err)
	}
	return err
}
