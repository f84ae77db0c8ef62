package web

import (
	"net/url"
	"slices"
	"strconv"

	"github.com/bluekeyes/go-gitdiff/gitdiff"

	"github.com/coven-run/coven/internal/control/review"
	"github.com/coven-run/coven/internal/text/lazyregexp"
)

// reviewRequest selects a part of the review of a task.
type reviewRequest struct {
	task   string
	extent review.Extent // empty in an address that a person has typed
	last   string        // tree of the last look, with which the page goes on to compare
	split  bool
	place  string // that is commented on
	skip   int    // lines of a file, which the browser has
	found  review.Review
}

// treeName matches the object ID of a tree.
var treeName = lazyregexp.New(`^[0-9a-f]{40,64}$`)

func reviewRequestOf(task string, values url.Values) reviewRequest {
	q := reviewRequest{task: task, extent: review.Extent(values.Get("part")), last: values.Get("last"), split: values.Get("view") == "split", place: values.Get("at")}
	if !slices.Contains([]review.Extent{review.Whole, review.SinceTurn, review.SinceLook}, q.extent) {
		q.extent = ""
	}
	if treeName.FindString(q.last) == "" {
		q.last = ""
	}
	q.skip, _ = strconv.Atoi(values.Get("skip"))
	return q
}

// path returns the address of this part.
func (q reviewRequest) path() string {
	query := url.Values{"part": {string(q.extent)}}
	for name, value := range map[string]string{"last": q.last, "at": q.place, "view": q.view()} {
		if value != "" {
			query.Set(name, value)
		}
	}
	return taskPath(q.task) + "/review?" + query.Encode()
}

func (q reviewRequest) view() string {
	if q.split {
		return "split"
	}
	return ""
}

// with returns the address of the review with another part, view or place.
func (q reviewRequest) with(extent review.Extent, split bool, place string) string {
	q.extent, q.split, q.place = extent, split, place
	return q.path()
}

// choice is a link to another part or view.
type choice struct {
	Name, Path string
	Chosen     bool
}

// here is the part of the review that a form returns to.
type here struct{ Part, Last, View string }

// parts returns the links to the parts of the change.
func (q reviewRequest) parts(found review.Review) []choice {
	all := []choice{{Name: "the whole change", Path: q.with(review.Whole, q.split, ""), Chosen: q.extent == review.Whole}}
	if found.Turn != "" {
		all = append(all, choice{Name: "the last turn", Path: q.with(review.SinceTurn, q.split, ""), Chosen: q.extent == review.SinceTurn})
	}
	if found.Last != "" {
		all = append(all, choice{Name: "since you last looked", Path: q.with(review.SinceLook, q.split, ""), Chosen: q.extent == review.SinceLook})
	}
	if !slices.ContainsFunc(all, func(c choice) bool { return c.Chosen }) {
		all[0].Chosen = true // there is nothing to compare with
	}
	return all
}

func (q reviewRequest) views() []choice {
	return []choice{
		{Name: "unified", Path: q.with(q.extent, false, ""), Chosen: !q.split},
		{Name: "side by side", Path: q.with(q.extent, true, ""), Chosen: q.split},
	}
}

// isIn reports whether the place that is commented on is in a file.
func (q reviewRequest) isIn(f review.File) bool {
	path, a, ok := cutPlace(q.place)
	return ok && (path == f.Path || a.Side == review.Old && path == f.OldPath)
}

// partOf returns the number of lines before the part of a file that has the place that is commented on.
func (q reviewRequest) partOf(f review.File) int {
	_, a, _ := cutPlace(q.place)
	n := 0
	for _, h := range f.Hunks {
		for _, l := range h.Lines {
			if a.Side == review.New && l.New == a.To || a.Side == review.Old && l.Old == a.To && l.Op == gitdiff.OpDelete {
				return n / partLines * partLines
			}
			n++
		}
	}
	return 0
}

// rowsPath returns the address of the rows of a file, without the first ones.
func (q reviewRequest) rowsPath(f review.File, skip int) string {
	query := url.Values{"part": {string(q.extent)}, "last": {q.last}, "view": {q.view()}, "at": {q.place}, "file": {f.Path}, "skip": {strconv.Itoa(skip)}}
	return taskPath(q.task) + "/review/file?" + query.Encode()
}

func (q reviewRequest) here() here { return here{string(q.extent), q.last, q.view()} }

// cutPlace returns the file of a place.
func cutPlace(text string) (path string, a review.Anchor, ok bool) {
	a, err := review.ParsePlace(text)
	return a.Path, a, err == nil
}
