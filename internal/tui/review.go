package tui

import (
	"fmt"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/bluekeyes/go-gitdiff/gitdiff"
	"github.com/charmbracelet/x/ansi"

	"github.com/coven-run/coven/internal/control/review"
	"github.com/coven-run/coven/internal/terminal"
)

// reviewView is the pane of a person's review of a change: its files, lines, comments and findings. Each action is a command
// line of coven.
type reviewView struct {
	task    string
	extent  review.Extent
	loaded  bool
	err     error
	review  review.Review
	files   []review.File
	toggled map[string]bool // files that a person folded or unfolded, by path
	rows    []reviewRow
	at      int               // selected row
	mark    int               // first row of a range, or -1
	typed   map[string]string // unfinished comments, by place
	last    string            // tree of the last look, with which the pane goes on to compare
	updated time.Time         // of the card, when the change was read
	reading *turn
}

// reviewRow is a row of the pane.
type reviewRow struct {
	file    int
	line    *review.Line   // nil for a heading
	comment *review.Placed // if the row is one of a comment
	text    string
	style   string
}

type reviewMsg struct {
	of     *reviewView
	extent review.Extent
	review review.Review
	files  []review.File
	err    error
}

func newReviewView(task string) *reviewView {
	return &reviewView{task: task, extent: review.SinceLook, toggled: map[string]bool{}, typed: map[string]string{}, mark: -1, reading: &turn{}}
}

// load reads the review again. While it is being read, it is read once more later.
func (v *reviewView) load(source Source) tea.Cmd {
	if !v.reading.begin() {
		return nil
	}
	task, extent, last, first := v.task, v.extent, v.last, !v.loaded
	return func() tea.Msg {
		r, files, err := source.Review(task, extent, last)
		if err == nil && first && r.Page.View.Live() {
			err = source.Looked(r)
		}
		return reviewMsg{v, extent, r, files, err}
	}
}

// take shows a review that was read. The selected line stays selected.
func (v *reviewView) take(msg reviewMsg, source Source) tea.Cmd {
	again := v.reading.end()
	if msg.extent != v.extent { // the person has chosen another one since
		return v.load(source)
	}
	v.show(msg)
	if again {
		return v.load(source)
	}
	return nil
}

func (v *reviewView) show(msg reviewMsg) {
	place, _ := v.place()
	v.loaded, v.err = true, msg.err
	if msg.err != nil {
		return
	}
	v.review, v.files, v.last = msg.review, msg.files, msg.review.Last
	v.layOut()
	if i := slices.IndexFunc(v.rows, func(r reviewRow) bool { return r.line != nil && v.anchor(r).Place() == place }); i >= 0 && place != "" {
		v.at = i
	}
	v.move(0)
}

// layOut makes the rows.
func (v *reviewView) layOut() {
	v.rows, v.mark = nil, -1
	for i, f := range v.files {
		v.add(reviewRow{file: i, text: v.heading(f), style: bold})
		v.remarks(i, nil, f.Comments, f.Findings)
		if v.isFolded(f) {
			continue
		}
		for _, h := range f.Hunks {
			v.add(reviewRow{file: i, text: printable(h.Header), style: dim})
			for j := range h.Lines {
				l := &h.Lines[j]
				v.add(reviewRow{file: i, line: l, text: lineText(l), style: lineStyle(l.Op)})
				v.remarks(i, l, l.Comments, l.Findings)
			}
		}
	}
}

func (v *reviewView) add(r reviewRow) { v.rows = append(v.rows, r) }

// heading returns the heading of a file.
func (v *reviewView) heading(f review.File) string {
	fold := "▾ "
	if v.isFolded(f) {
		fold = "▸ "
	}
	text := fold + f.Status + " " + printable(f.Path)
	if f.OldPath != "" {
		text += " from " + printable(f.OldPath)
	}
	switch {
	case f.Binary:
		text += "  binary"
	case f.Secret:
		text += "  not shown: it contains a secret"
	default:
		text += fmt.Sprintf("  +%d -%d", f.Added, f.Deleted)
	}
	if f.Generated {
		text += "  generated"
	}
	if f.Viewed {
		text += "  viewed"
	}
	return text
}

// foldedFrom is the number of changed lines from which a file is folded.
const foldedFrom = 1000

func (v *reviewView) isFolded(f review.File) bool {
	return (f.Viewed || f.Generated || f.Added+f.Deleted >= foldedFrom) != v.toggled[f.Path]
}

// remarks adds rows with comments and findings.
func (v *reviewView) remarks(file int, line *review.Line, comments []review.Placed, findings []review.Finding) {
	for _, f := range findings {
		style := yellow
		if f.Open {
			style = red
		}
		v.add(reviewRow{file: file, line: line, text: "      " + printable(fmt.Sprintf("%s: %s (%s)", f.Severity, f.Message, f.By)), style: style})
	}
	for i := range comments {
		c := &comments[i]
		row := reviewRow{file: file, line: line, comment: c, style: green}
		texts := []string{fmt.Sprintf("%s (%s): %s", c.ID, v.review.Describe(*c), c.Text)}
		if c.Suggestion != nil {
			texts = append(texts, "suggestion: "+*c.Suggestion)
		}
		if c.Answer != "" {
			texts = append(texts, "the agent: "+c.Answer)
		}
		for _, text := range texts {
			row.text = "      " + printable(text)
			v.add(row)
		}
	}
}

func lineText(l *review.Line) string {
	number := func(n int) string {
		if n == 0 {
			return "    "
		}
		return fmt.Sprintf("%4d", n)
	}
	return number(l.Old) + " " + number(l.New) + " " + l.Op.String() + terminal.Printable(strings.ReplaceAll(l.Text, "\t", "    "))
}

func lineStyle(op gitdiff.LineOp) string {
	switch op {
	case gitdiff.OpAdd:
		return green
	case gitdiff.OpDelete:
		return red
	}
	return plain
}

// anchor returns the place of the line of a row.
func (v *reviewView) anchor(r reviewRow) review.Anchor {
	f := v.files[r.file]
	if r.line == nil {
		return review.Anchor{}
	}
	if r.line.Op == gitdiff.OpDelete {
		path := f.OldPath
		if path == "" {
			path = f.Path
		}
		return review.Anchor{Path: path, Side: review.Old, From: r.line.Old, To: r.line.Old}
	}
	return review.Anchor{Path: f.Path, Side: review.New, From: r.line.New, To: r.line.New}
}

// place returns the selected lines as coven review takes them. ok is false if there are none, or if they cannot be commented on
// in this extent.
func (v *reviewView) place() (text string, ok bool) {
	if v.at >= len(v.rows) || v.rows[v.at].line == nil {
		return "", false
	}
	to := v.anchor(v.rows[v.at])
	from := to
	if v.mark >= 0 && v.rows[v.mark].line != nil {
		from = v.anchor(v.rows[v.mark])
	}
	if from.Path != to.Path || from.Side != to.Side {
		return "", false
	}
	to.From, to.To = min(from.From, to.From), max(from.To, to.To)
	if to.Side == review.Old && !v.files[v.rows[v.at].file].FromStart {
		return to.Place(), false
	}
	return to.Place(), true
}

// move moves the selection by rows.
func (v *reviewView) move(by int) { v.at = max(min(v.at+by, len(v.rows)-1), 0) }

// jump selects the next row, or with by -1 the previous one, that matches.
func (v *reviewView) jump(by int, matches func(reviewRow) bool) {
	for i := v.at + by; i >= 0 && i < len(v.rows); i += by {
		if matches(v.rows[i]) {
			v.at = i
			return
		}
	}
}

// file returns the file of the selected row.
func (v *reviewView) file() (review.File, bool) {
	if v.at >= len(v.rows) {
		return review.File{}, false
	}
	return v.files[v.rows[v.at].file], true
}

// extents in the order of the key tab, with their names.
var extents = []struct {
	extent review.Extent
	name   string
}{{review.SinceLook, "since you last looked"}, {review.SinceTurn, "the last turn"}, {review.Whole, "the whole change"}}

// next selects the next extent.
func (v *reviewView) next() {
	for i, e := range extents {
		if e.extent == v.extent {
			v.extent = extents[(i+1)%len(extents)].extent
			v.loaded, v.at = false, 0
			return
		}
	}
}

// navigate handles the keys that select a row, and reports whether key is one of them.
func (v *reviewView) navigate(key string, height int) bool {
	isFile := func(r reviewRow) bool { return strings.HasPrefix(r.text, "▾") || strings.HasPrefix(r.text, "▸") }
	isRemark := func(r reviewRow) bool { return r.comment != nil || r.style == yellow }
	switch key {
	case "j", "down":
		v.move(1)
	case "k", "up":
		v.move(-1)
	case "pgdown", "ctrl+d", "space":
		v.move(height - 1)
	case "pgup", "ctrl+u":
		v.move(1 - height)
	case "g", "home":
		v.move(-len(v.rows))
	case "G", "end":
		v.move(len(v.rows))
	case "n":
		v.jump(1, isFile)
	case "p":
		v.jump(-1, isFile)
	case "]":
		v.jump(1, isRemark)
	case "[":
		v.jump(-1, isRemark)
	case "V":
		v.mark = v.at
	case "enter":
		if f, ok := v.file(); ok {
			v.toggled[f.Path] = !v.toggled[f.Path]
			v.layOut()
			v.jumpTo(f.Path)
		}
	default:
		return false
	}
	return true
}

// jumpTo selects the heading of a file.
func (v *reviewView) jumpTo(path string) {
	if i := slices.IndexFunc(v.rows, func(r reviewRow) bool { return v.files[r.file].Path == path }); i >= 0 {
		v.at = i
	}
}

// key handles a key of the pane.
func (v *reviewView) key(m *Model, key string) tea.Cmd {
	if v.navigate(key, m.room()) {
		return nil
	}
	switch key {
	case "q", "esc", "ctrl+c":
		m.review = nil
	case "tab":
		v.next()
		return v.load(m.source)
	case "c":
		v.comment(m, "--comment", "comment on")
	case "s":
		v.comment(m, "--suggest", "replace")
	case "D":
		if v.at < len(v.rows) && v.rows[v.at].comment != nil {
			return m.run([]string{"review", v.task, "--discard", v.rows[v.at].comment.ID})
		}
		m.said = "select a comment to discard it"
	case "S":
		v.send(m)
	case "u":
		f, ok := v.file()
		if !ok {
			return nil
		}
		if err := m.source.Viewed(v.review, f.Path, !f.Viewed); err != nil {
			m.said = printable(err.Error())
		}
		return v.load(m.source)
	case "a", "r", "x":
		if m.selected == v.task { // it may have landed
			return m.act(key)
		}
	case "?":
		m.pager = &pager{title: "Keys", lines: reviewHelp()}
	}
	return nil
}

// send asks whether to send the drafts.
func (v *reviewView) send(m *Model) {
	n := len(v.review.Drafts())
	if n == 0 {
		m.said = "there are no comments to send"
		return
	}
	m.confirm(fmt.Sprintf("send the comments of %s to the agent (%d)?", v.task, n), func(m *Model, _ string) tea.Cmd {
		return m.run([]string{"review", v.task, "--send"})
	})
}

// comment asks for the text of a comment on the selected lines.
func (v *reviewView) comment(m *Model, flag, label string) {
	place, ok := v.place()
	switch {
	case !ok && place != "":
		m.said = "press tab for the whole change to comment on a removed line"
		return
	case !ok:
		m.said = "select a line, or with V several lines of one side"
		return
	}
	m.ask(label+" "+place, v.typed[flag+place], func(m *Model, text string) tea.Cmd {
		delete(v.typed, flag+place)
		if v.mark = -1; strings.TrimSpace(text) == "" {
			m.said = "nothing was added: the comment is empty"
			return nil
		}
		args := []string{"review", v.task, flag, place, text}
		if strings.HasPrefix(text, "-") {
			args = []string{"review", flag, place, "--", v.task, text}
		}
		return m.run(args)
	})
	m.asks.left = func(text string) { v.typed[flag+place] = text }
}

// header is the title of the pane.
func (v *reviewView) header() string {
	text := styled(bold, "Review of "+printable(v.task)) + "  " + v.extentName()
	if n := len(v.review.Drafts()); n > 0 {
		text += "  " + styled(green, fmt.Sprintf("%d to send", n))
	}
	return text
}

// lines returns the rows of the pane around the selected one.
func (v *reviewView) lines(width, height int) []string {
	rows := []string{}
	switch {
	case v.err != nil:
		return append(rows, styled(red, printable(v.err.Error())))
	case !v.loaded:
		return append(rows, "reading the change …")
	case len(v.files) == 0:
		return append(rows, "nothing has changed: tab shows another part")
	}
	first := max(min(v.at-height/2, len(v.rows)-height), 0)
	for i := first; i < min(first+height, len(v.rows)); i++ {
		r := v.rows[i]
		mark := " "
		if i == v.at || v.mark >= 0 && i >= min(v.mark, v.at) && i <= max(v.mark, v.at) {
			mark = styled(invert, ">")
		}
		rows = append(rows, mark+styled(r.style, ansi.Truncate(r.text, max(width-1, 1), "…")))
	}
	return rows
}

func (v *reviewView) extentName() string {
	for _, e := range extents {
		if e.extent == v.extent && (len(v.files) == 0 || !v.files[0].FromStart) {
			return e.name
		}
	}
	return "the whole change"
}

// reviewKeys names the most important keys of the pane.
var reviewKeys = []string{"c comment", "S send", "n p file", "tab part", "a approve", "r request changes", "s suggest", "u viewed", "x reject", "? keys", "q back"}

func reviewHelp() []string {
	return []string{
		"j k ↑ ↓  move        n p  next, previous file      [ ]  comments and findings     g G  first, last",
		"Enter    fold or unfold the file                   tab  since you last looked, the last turn, the whole change", "",
		"V  begin a range of lines, which ends at the selected one",
		"c  comment on the lines          " + styled(dim, "coven review TASK --comment FILE:LINE TEXT"),
		"s  suggest other lines           " + styled(dim, "coven review TASK --suggest FILE:LINE TEXT"),
		"D  discard the selected draft    " + styled(dim, "coven review TASK --discard ID"),
		"S  send all drafts to the agent  " + styled(dim, "coven review TASK --send"),
		"u  viewed: the file is folded until it changes", "",
		"a  approve        r  request changes        x  reject        q  back",
	}
}
