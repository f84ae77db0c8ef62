package grimoires

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/coven-run/coven/internal/config/yamldoc"
	"github.com/coven-run/coven/internal/file/regularfile"
	"github.com/coven-run/coven/internal/text/didyoumean"
	"github.com/coven-run/coven/internal/text/glob"
)

// Choice is the grimoire chosen for a task.
type Choice struct {
	Grimoire string
	Why      string // the rule or default that chose it, for people
}

// Matchers choose the grimoires of tasks that do not name one: first the project's
// (.coven/grimoire-matchers.yaml), then the user's.
type Matchers struct {
	rules     []rule   // the first that matches applies
	otherwise []Choice // the defaults of the files, highest precedence first
}

// rule is a rule with conditions, all of which must be true. A nil condition is always true.
type rule struct {
	choice                   Choice
	anyTags, allTags, noTags []string // globs
	types, words             []string
	priorities               []int
	lowest, highest          int // 0 is the most urgent
}

// matchersFile is the name of the file in .coven and in the user's directory.
const matchersFile = "grimoire-matchers.yaml"

// MaxPriority is the lowest priority.
const MaxPriority = 4

type matchersKeys struct {
	Default text                               `yaml:"default" about:"grimoire of tasks that match no rule"`
	Rules   yamldoc.At[[]yamldoc.At[ruleKeys]] `yaml:"rules" about:"rules; the first match wins"`
}

type ruleKeys struct {
	Name          text                  `yaml:"name" about:"name of the rule in messages"`
	Grimoire      text                  `yaml:"grimoire" need:"true" about:"the grimoire it chooses"`
	AnyTags       yamldoc.At[[]text]    `yaml:"any_tags" about:"globs: at least one label matches at least one of them"`
	AllTags       yamldoc.At[[]text]    `yaml:"all_tags" about:"globs: each matches a label"`
	NotTags       yamldoc.At[[]text]    `yaml:"not_tags" about:"globs: none matches a label"`
	Priority      yamldoc.At[[]text]    `yaml:"priority" about:"numbers, or P1"`
	PriorityRange yamldoc.At[rangeKeys] `yaml:"priority_range" about:"min and max, inclusive"`
	Type          yamldoc.At[[]text]    `yaml:"type" about:"of the task: bug, feature, ..."`
	BodyContains  yamldoc.At[[]text]    `yaml:"body_contains" about:"texts: at least one is in the title or description"`
}

type rangeKeys struct {
	Min text `yaml:"min"`
	Max text `yaml:"max"`
}

// Matchers reads the files that choose grimoires. The error is a yamldoc.Errors with all errors in them,
// including unknown grimoires.
func (l *Library) Matchers() (*Matchers, error) {
	known, err := l.Names()
	if err != nil {
		return nil, err
	}
	m, all := &Matchers{}, yamldoc.Errors(nil)
	for _, s := range l.sources {
		data, file, err := s.matchers()
		if err != nil {
			return nil, err
		}
		if file == "" {
			continue
		}
		err = m.read(file, data, known)
		if errors.As(err, new(yamldoc.Errors)) {
			all = append(all, asErrors(err)...)
		} else if err != nil {
			return nil, err
		}
	}
	if len(all) > 0 {
		return nil, all
	}
	return m, nil
}

// matchers returns the text of the source's file and its label. file is empty if it does not exist.
func (s source) matchers() (data []byte, file string, err error) {
	if s.flat {
		return nil, "", nil
	}
	fsys, done, err := s.open()
	if err != nil {
		return nil, "", err
	}
	defer done()
	file = s.label(matchersFile)
	misnamed := strings.TrimSuffix(matchersFile, ".yaml") + ".yml"
	if _, err := fs.Lstat(fsys, misnamed); err == nil {
		return nil, "", yamldoc.Errors{{File: s.label(misnamed), Line: 1, Column: 1, Msg: "coven does not read this file", Hint: "rename it to " + matchersFile}}
	}
	switch data, err = regularfile.ReadFrom(fsys, matchersFile, maxFile); {
	case errors.Is(err, fs.ErrNotExist):
		return nil, "", nil
	case err != nil:
		return nil, "", fmt.Errorf("read %s: %w", file, err)
	}
	return data, file, nil
}

// read adds the rules of a file. known lists the existing grimoires.
func (m *Matchers) read(file string, data []byte, known []string) error {
	doc, err := yamldoc.Parse(file, data)
	if err != nil {
		return err
	}
	var keys matchersKeys
	doc.Decode(&keys)
	r := &ruleReader{doc: doc, file: file, known: known, lines: map[string]bool{}}
	if keys.Default.Set() {
		r.grimoire(keys.Default)
		m.otherwise = append(m.otherwise, Choice{keys.Default.Value, "the default of " + file})
	}
	for _, k := range keys.Rules.Value {
		m.rules = append(m.rules, r.rule(k))
	}
	return doc.Err()
}

type ruleReader struct {
	doc   *yamldoc.Document
	file  string
	known []string
	lines map[string]bool // names of rules
}

func (r *ruleReader) grimoire(name text) {
	if slices.Contains(r.known, name.Value) {
		return
	}
	hint := cmp.Or(didyoumean.Hint(name.Value, r.known), "known: "+strings.Join(r.known, ", "))
	r.doc.Fail(name, fmt.Sprintf("unknown grimoire %q", name.Value), hint)
}

func (r *ruleReader) rule(at yamldoc.At[ruleKeys]) rule {
	k := at.Value
	switch name := strings.TrimSpace(k.Name.Value); {
	case name == "":
		r.doc.Fail(at, "a rule has no name", "coven names the rule when it explains the choice of a grimoire")
	case r.lines[name]:
		r.doc.Fail(k.Name, fmt.Sprintf("duplicate rule name %q", name), "")
	default:
		r.lines[name] = true
	}
	if !k.Grimoire.Set() {
		r.doc.Fail(at, "a rule has no grimoire", "")
	} else {
		r.grimoire(k.Grimoire)
	}
	if !slices.Contains([]bool{
		k.AnyTags.Set(), k.AllTags.Set(), k.NotTags.Set(), k.Priority.Set(),
		k.PriorityRange.Set(), k.Type.Set(), k.BodyContains.Set(),
	}, true) {
		r.doc.Fail(at, "a rule has no condition", "write default: NAME for all other tasks")
	}
	made := rule{
		choice:  Choice{k.Grimoire.Value, fmt.Sprintf("the rule %q of %s", k.Name.Value, r.file)},
		anyTags: r.globs(k.AnyTags), allTags: r.globs(k.AllTags), noTags: r.globs(k.NotTags),
		types: r.words(k.Type), words: r.words(k.BodyContains),
	}
	for _, p := range r.items(k.Priority) {
		made.priorities = append(made.priorities, r.priority(p, 0))
	}
	made.lowest = r.priority(k.PriorityRange.Value.Min, 0)
	made.highest = r.priority(k.PriorityRange.Value.Max, MaxPriority)
	if made.lowest > made.highest {
		r.doc.Fail(k.PriorityRange, "min is greater than max", "0 is the most urgent")
	}
	return made
}

// items returns the items of a list, which must not be empty.
func (r *ruleReader) items(list yamldoc.At[[]text]) []text {
	if list.Set() && len(list.Value) == 0 {
		r.doc.Fail(list, "the list is empty", "remove it: no task can match")
	}
	return list.Value
}

func (r *ruleReader) words(list yamldoc.At[[]text]) []string {
	var all []string
	for _, item := range r.items(list) {
		if strings.TrimSpace(item.Value) == "" {
			r.doc.Fail(item, "the text is empty", "")
		}
		all = append(all, strings.ToLower(item.Value))
	}
	return all
}

func (r *ruleReader) globs(list yamldoc.At[[]text]) []string {
	var all []string
	for _, item := range r.items(list) {
		if item.Value == "" || glob.Check(item.Value) != nil {
			r.doc.Fail(item, fmt.Sprintf("%q is not a pattern", item.Value), "* ? [a-z] {a,b} and ** over slashes")
		}
		all = append(all, item.Value)
	}
	return all
}

// priority parses 1 or P1.
func (r *ruleReader) priority(p text, otherwise int) int {
	if !p.Set() {
		return otherwise
	}
	n, err := strconv.Atoi(strings.TrimPrefix(strings.ToUpper(p.Value), "P"))
	if err != nil || n < 0 || n > MaxPriority {
		r.doc.Fail(p, fmt.Sprintf("%q is not a priority", p.Value), fmt.Sprintf("0 to %d, 0 is the most urgent; or P0 to P%d", MaxPriority, MaxPriority))
		return otherwise
	}
	return n
}

// Choose returns the grimoire of the first rule that matches a task, or the default of a file. It returns
// false if there is neither.
func (m *Matchers) Choose(t Task) (Choice, bool) {
	for _, r := range m.rules {
		if r.matches(t) {
			return r.choice, true
		}
	}
	if len(m.otherwise) > 0 {
		return m.otherwise[0], true
	}
	return Choice{}, false
}

func (r rule) matches(t Task) bool {
	body := strings.ToLower(t.Title + "\n" + t.Description)
	tagged := func(glob string) bool {
		return slices.ContainsFunc(t.Labels, func(label string) bool { return doublestar.MatchUnvalidated(glob, label) })
	}
	switch {
	case r.anyTags != nil && !slices.ContainsFunc(r.anyTags, tagged),
		slices.ContainsFunc(r.allTags, func(glob string) bool { return !tagged(glob) }),
		slices.ContainsFunc(r.noTags, tagged),
		r.priorities != nil && !slices.Contains(r.priorities, t.Priority),
		t.Priority < r.lowest,
		r.highest < MaxPriority && t.Priority > r.highest,
		r.types != nil && !slices.Contains(r.types, strings.ToLower(t.Type)),
		r.words != nil && !slices.ContainsFunc(r.words, func(word string) bool { return strings.Contains(body, word) }):
		return false
	}
	return true
}
