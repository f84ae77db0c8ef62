package review

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/bluekeyes/go-gitdiff/gitdiff"

	"github.com/coven-run/coven/internal/control"
	"github.com/coven-run/coven/internal/control/comments"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/text/shellword"
	"github.com/coven-run/coven/worktree/diff"
)

// patchContext is the number of lines around a change of a patch.
const patchContext = 3

// Patch returns the suggestions among the drafts of a task as a patch of the present content, which git apply accepts.
func Patch(ctx context.Context, c *control.Controller, task string) (string, error) {
	r, err := Of(ctx, c, task)
	if err != nil {
		return "", err
	}
	byPath := map[string][]Placed{}
	var paths []string
	for _, p := range r.Drafts() {
		if p.Suggestion == nil || p.State == Outdated {
			continue
		}
		if byPath[p.Now.Path] == nil {
			paths = append(paths, p.Now.Path)
		}
		byPath[p.Now.Path] = append(byPath[p.Now.Path], p)
	}
	list := "coven review " + shellword.Word(task) + " --drafts"
	if len(paths) == 0 {
		return "", exit.Usagef(list, "no draft of %s is a suggestion for its present lines", task)
	}
	var patch strings.Builder
	slices.Sort(paths)
	for _, path := range paths {
		content, err := diff.FileIn(ctx, c.Project.Repo, r.Page.Diff.To, path, comments.MaxFile)
		if err != nil {
			return "", err
		}
		edits := byPath[path]
		slices.SortFunc(edits, func(a, b Placed) int { return cmp.Compare(a.Now.From, b.Now.From) })
		for i := 1; i < len(edits); i++ {
			if edits[i].Now.From <= edits[i-1].Now.To {
				return "", exit.Usagef(list, "%s and %s suggest different texts for the same lines: discard one", edits[i-1].ID, edits[i].ID)
			}
		}
		file := gitdiff.File{OldName: path, NewName: path, TextFragments: fragments(strings.SplitAfter(string(content), "\n"), edits)}
		patch.WriteString(file.String())
	}
	return patch.String(), nil
}

// fragments returns the changes of a file by suggestions, which are in the order of their lines and do not overlap.
func fragments(lines []string, edits []Placed) (all []*gitdiff.TextFragment) {
	if lines[len(lines)-1] == "" { // after the last newline
		lines = lines[:len(lines)-1]
	}
	end := "\n"
	if strings.HasSuffix(lines[0], "\r\n") {
		end = "\r\n"
	}
	shifted := 0 // lines that the edits before have added
	for i := 0; i < len(edits); {
		from := max(edits[i].Now.From-1-patchContext, 0)
		f := &gitdiff.TextFragment{OldPosition: int64(from + 1), NewPosition: int64(from + 1 + shifted)}
		at := from // the next line of the file
		for ; i < len(edits) && edits[i].Now.From-1 <= at+2*patchContext; i++ {
			e := edits[i].Now
			add(f, gitdiff.OpContext, lines[at:e.From-1])
			old := lines[e.From-1 : e.To]
			added := suggested(*edits[i].Suggestion, old, end)
			add(f, gitdiff.OpDelete, old)
			add(f, gitdiff.OpAdd, added)
			shifted += len(added) - len(old)
			at = e.To
		}
		add(f, gitdiff.OpContext, lines[at:min(at+patchContext, len(lines))])
		all = append(all, f)
	}
	return all
}

// suggested returns the lines of a suggestion. The last one ends as the old lines do.
func suggested(text string, old []string, end string) []string {
	if text == "" {
		return nil
	}
	lines := strings.SplitAfter(strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", end)+end, "\n")
	lines = lines[:len(lines)-1]
	if last := len(lines) - 1; !strings.HasSuffix(old[len(old)-1], "\n") {
		lines[last] = strings.TrimSuffix(lines[last], end)
	}
	return lines
}

func add(f *gitdiff.TextFragment, op gitdiff.LineOp, lines []string) {
	for _, line := range lines {
		f.Lines = append(f.Lines, gitdiff.Line{Op: op, Line: line})
	}
	n := int64(len(lines))
	switch op {
	case gitdiff.OpContext:
		f.OldLines, f.NewLines = f.OldLines+n, f.NewLines+n
	case gitdiff.OpDelete:
		f.OldLines, f.LinesDeleted = f.OldLines+n, f.LinesDeleted+n
	case gitdiff.OpAdd:
		f.NewLines, f.LinesAdded = f.NewLines+n, f.LinesAdded+n
	}
}
