package review

import (
	"context"
	"slices"
	"strings"

	"github.com/bluekeyes/go-gitdiff/gitdiff"

	"github.com/coven-run/coven/internal/control"
	"github.com/coven-run/coven/internal/control/comments"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/worktree"
	"github.com/coven-run/coven/worktree/diff"
)

// placer finds the lines of comments in the present content.
type placer struct {
	ctx   context.Context //nolint:containedctx // of one call of Of
	repo  *worktree.Repo
	page  control.Page
	turns turns
	diffs map[[2]string]patches // by the compared trees
	files []*gitdiff.File       // of the change

	contents map[[2]string][]string // lines, by tree and path
}

// comment places a comment.
func (p *placer) comment(c Comment) Placed {
	results, sent := p.turns.after(c.ID)
	placed := Placed{Comment: c, State: Draft, Answer: answerTo(c.ID, results)}
	now, same := p.find(c.Anchor, p.present(c.Side))
	if same && c.Side == Old && !p.isRemoved(now) {
		same = false
	}
	if same {
		placed.Now = now
	}
	switch {
	case !sent && !same:
		placed.State = Outdated
	case !sent:
	case !same && p.changedBefore(c):
		placed.State = Superseded
	case !same:
		placed.State, placed.Commit = Addressed, p.changedBy(c, results)
	case now.Path != c.Path || now.From != c.From:
		placed.State = Moved
	default:
		placed.State = Untouched
	}
	return placed
}

// present returns the present tree of a side.
func (p *placer) present(side Side) string {
	if side == Old {
		return p.page.Diff.From
	}
	return p.page.Diff.To
}

// changedBefore reports whether the lines of a comment had changed before it was sent.
func (p *placer) changedBefore(c Comment) bool {
	tree := p.turns.sent[c.ID].tree
	if tree == "" || c.Side == Old { // the start of the change at that time is unknown
		return false
	}
	if _, err := p.between(tree, p.present(New)); err != nil { // git has collected it
		return false
	}
	_, same := p.find(c.Anchor, tree)
	return !same
}

// changedBy returns the first commit that changed the lines of a comment.
func (p *placer) changedBy(c Comment, results []event.Result) string {
	for _, r := range results {
		if r.Commit == "" || r.Tree == "" {
			continue
		}
		if c.Side == Old {
			return r.Commit // the present one: earlier changes are not compared with their starts
		}
		if _, same := p.find(c.Anchor, r.Tree); !same {
			return r.Commit
		}
	}
	return ""
}

// answerTo returns the last answer of the agent to a comment.
func answerTo(id string, results []event.Result) string {
	for _, r := range slices.Backward(results) {
		answers, _ := r.Outputs["answers"].(map[string]any)
		if text, ok := answers[id].(string); ok {
			return text
		}
	}
	return ""
}

// find returns the lines of an anchor in a tree, and whether they are unchanged there. The difference between the trees does not
// show the lines of a file to which a link leads.
func (p *placer) find(a Anchor, tree string) (Anchor, bool) {
	if a.Tree == tree {
		return a, true
	}
	a, same := p.follow(a, tree)
	if !same {
		return a, false
	}
	lines, err := p.lines(a)
	return a, err == nil && comments.HashOf(lines) == a.Hash
}

// follow returns the place of the lines of an anchor in a tree, and false if the difference between the trees changes them.
func (p *placer) follow(a Anchor, tree string) (Anchor, bool) {
	d, err := p.between(a.Tree, tree)
	if err != nil { // git has collected the tree of the anchor
		return p.search(a, tree)
	}
	a.Tree = tree
	i := slices.IndexFunc(d.files, func(f diff.FileChange) bool {
		return f.Path == a.Path && f.Status != "C" || f.OldPath == a.Path && f.Status == "R"
	})
	if i < 0 {
		return a, true
	}
	f := d.files[i]
	if f.Status == "D" || f.Status == "T" || f.Binary {
		return a, false
	}
	a.Path = f.Path
	from, ok := shift(d.parts[i], a.From, a.To)
	a.From, a.To = from, from+a.To-a.From
	return a, ok
}

// patches is a difference, cut into the parts of its files once for all comments.
type patches struct {
	files []diff.FileChange
	parts []string
}

func (p *placer) between(from, to string) (patches, error) {
	key := [2]string{from, to}
	d, ok := p.diffs[key]
	if ok {
		return d, nil
	}
	found, err := diff.Between(p.ctx, p.repo, from, to)
	if err == nil {
		d = patches{found.Files, found.Parts()}
		p.diffs[key] = d
	}
	return d, err
}

// shift returns the first of the lines from to to after a patch of their file, and whether they are unchanged.
func shift(patch string, from, to int) (int, bool) {
	files, _, err := gitdiff.Parse(strings.NewReader(patch))
	if err != nil || len(files) != 1 {
		return 0, false
	}
	by := 0
	for _, fragment := range files[0].TextFragments {
		old := int(fragment.OldPosition)
		if fragment.OldLines == 0 {
			old++ // git names the line before
		}
		for _, line := range fragment.Lines {
			switch {
			case line.Op == gitdiff.OpAdd && old <= from:
				by++
			case line.Op == gitdiff.OpAdd && old <= to, line.Op == gitdiff.OpDelete && old >= from && old <= to:
				return 0, false
			case line.Op == gitdiff.OpDelete && old < from:
				by--
			}
			if line.Op != gitdiff.OpAdd {
				old++
			}
		}
	}
	return from + by, true
}

// search looks for the lines of an anchor in their file, first at their place, then elsewhere if there is one such place.
func (p *placer) search(a Anchor, tree string) (Anchor, bool) {
	lines, err := p.file(tree, a.Path)
	if err != nil {
		return a, false
	}
	n := a.To - a.From
	var found []int
	for from := 1; from+n <= len(lines); from++ {
		if comments.HashOf(lines[from-1:from+n]) == a.Hash {
			found = append(found, from)
		}
	}
	switch {
	case slices.Contains(found, a.From):
	case len(found) == 1:
		a.From, a.To = found[0], found[0]+n
	default:
		return a, false
	}
	a.Tree = tree
	return a, true
}

// isRemoved reports whether the change removes all lines of an anchor in its start.
func (p *placer) isRemoved(a Anchor) bool {
	if p.files == nil {
		p.files = parse(p.page.Diff.Patch)
	}
	removed := 0
	for _, file := range p.files {
		if file.OldName != a.Path {
			continue
		}
		for _, fragment := range file.TextFragments {
			old := int(fragment.OldPosition)
			for _, line := range fragment.Lines {
				if line.Op == gitdiff.OpDelete && old >= a.From && old <= a.To {
					removed++
				}
				if line.Op != gitdiff.OpAdd {
					old++
				}
			}
		}
	}
	return removed == a.To-a.From+1
}

// maxPatch is the maximum size in bytes of a patch whose lines are shown.
const maxPatch = 32 << 20

// parse returns the files of a patch. It returns the ones before an error, and none of a patch that is too large.
func parse(patch string) []*gitdiff.File {
	if len(patch) > maxPatch {
		return nil
	}
	files, _, _ := gitdiff.Parse(strings.NewReader(patch)) // git wrote it
	return files
}

// marks returns a mark of the present content of each file of a patch.
func marks(files []*gitdiff.File) map[string]string {
	all := map[string]string{}
	for _, f := range files {
		all[nameOf(f)] = f.NewOIDPrefix + " " + f.NewMode.String()
	}
	return all
}

// nameOf returns the present name of a file, or its former one if it was deleted.
func nameOf(f *gitdiff.File) string {
	if f.NewName == "" {
		return f.OldName
	}
	return f.NewName
}

// viewed returns the paths of the files that were viewed as they are.
func viewed(s comments.File, files []*gitdiff.File) []string {
	paths := []string{}
	for path, mark := range marks(files) {
		if s.Viewed[path] == mark {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	return paths
}
