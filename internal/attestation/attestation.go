// Package attestation defines the receipt of a landing: an in-toto statement about a commit and its tree, with the checks,
// the reviews and the approval that were required to land it. The format is described in docs/formats/receipts.md.
package attestation

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/coven-run/coven/internal/text/lazyregexp"
	"github.com/coven-run/coven/internal/text/strictjson"
)

// The types of a statement.
const (
	StatementType = "https://in-toto.io/Statement/v1"
	PredicateType = "https://github.com/coven-run/coven/landing/v1"
)

// A Statement is an in-toto Statement v1 about a landed commit.
type Statement struct {
	Type          string    `json:"_type"`
	Subject       []Subject `json:"subject"` // the commit, then its tree
	PredicateType string    `json:"predicateType"`
	Predicate     Landing   `json:"predicate"`
}

// A Subject is a git object.
type Subject struct {
	Name   string `json:"name"`
	Digest Digest `json:"digest"`
}

// A Digest is the object ID of a commit or of a tree.
type Digest struct {
	Commit string `json:"gitCommit,omitempty"`
	Tree   string `json:"gitTree,omitempty"`
}

// Landing is the predicate: how the commit landed.
type Landing struct {
	Task     string `json:"task"`
	Session  string `json:"session"`
	Target   string `json:"target"`   // full ref
	Old      string `json:"oldTip"`   // the target's tip before
	Strategy string `json:"strategy"` // squash, merge, rebase or pull-request
	// Head is the tip of the target after the landing if the changes of other tasks landed on top of the commit in the same
	// update. With lists the tasks with which it was checked.
	Head string   `json:"newTip,omitempty"`
	With []string `json:"checkedWith,omitempty"`
	// Setup has the commands that prepared the worktree. It is nil in receipts of versions that did not record them.
	Setup    []string `json:"setup,omitzero"`
	Checks   []Check  `json:"checks"`
	Reviews  []Review `json:"reviews"`
	Approval Approval `json:"approval"`
}

// A Check is the run of a command that counted for the landing.
type Check struct {
	Command      string        `json:"command"`
	Required     bool          `json:"required"` // the change could not land without it
	Step         string        `json:"step"`     // path of the step that ran it
	ExitCode     int           `json:"exitCode"`
	Duration     time.Duration `json:"durationNs"`
	Log          string        `json:"logSha256"`
	Tree         string        `json:"tree"`                   // on which it ran
	Settings     string        `json:"settings,omitempty"`     // sha256 of the step's own variables and directory
	ReadOutside  *ReadOutside  `json:"readOutside,omitempty"`  // files outside the tree
	Reused       string        `json:"reusedFrom,omitempty"`   // the session in which it passed with the same inputs
	FailedBeside string        `json:"failedBeside,omitempty"` // tasks whose checks ran when it failed for the first time
	NotIsolated  bool          `json:"notIsolated,omitempty"`  // it could read the files of the main checkout
}

// ReadOutside describes the files outside the tree that a command read.
type ReadOutside struct {
	Text   string `json:"text"`   // such as "3 in node_modules"
	SHA256 string `json:"sha256"` // of their list
}

// A Review is the last opinion of a reviewer at a step.
type Review struct {
	Reviewer string `json:"reviewer"`
	Step     string `json:"step"` // without iterations and attempts
	Verdict  string `json:"verdict"`
	Tree     string `json:"tree"` // the reviewed one
}

// Approval is the approval of the change. The other fields are empty if none was required.
type Approval struct {
	Required bool      `json:"required"`
	By       string    `json:"by,omitempty"` // a person's name, or --auto-approve
	At       time.Time `json:"at,omitzero"`
	Tree     string    `json:"tree,omitempty"` // the tree that was approved; the target may have been merged into it since
}

// Commit returns the commit that the statement is about.
func (s Statement) Commit() string { return s.Subject[0].Digest.Commit }

// Tree returns the tree of that commit.
func (s Statement) Tree() string { return s.Subject[1].Digest.Tree }

// Text returns the statement as indented JSON with a final line feed.
func (s Statement) Text() (string, error) {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(s); err != nil {
		return "", fmt.Errorf("encode the receipt: %w", err)
	}
	return text.String(), nil
}

var hash = lazyregexp.New(`^[0-9a-f]{64}$`)

var objectID = lazyregexp.New(`^([0-9a-f]{40}|[0-9a-f]{64})$`)

// Parse parses a statement. It accepts no unknown field, no name twice and no other type.
func Parse(text string) (Statement, error) {
	var s Statement
	if _, err := strictjson.Object([]byte(text)); err != nil {
		return s, fmt.Errorf("the receipt is not valid: %w", err)
	}
	dec := json.NewDecoder(strings.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&s); err != nil {
		return s, fmt.Errorf("the receipt is not valid: %s", strings.TrimPrefix(err.Error(), "json: "))
	}
	if err := s.validate(); err != nil {
		return s, err
	}
	written, err := s.Text()
	if err == nil && compact(written) != compact(text) {
		err = errors.New("the receipt is not valid: fields are missing, or not as coven writes them")
	}
	return s, err
}

// compact returns valid JSON without insignificant spaces.
func compact(text string) string {
	var short bytes.Buffer
	_ = json.Compact(&short, []byte(text)) // the text is valid
	return short.String()
}

// validate checks the form: the fields that every receipt has.
func (s Statement) validate() error {
	l := s.Predicate
	switch {
	case s.Type != StatementType:
		return fmt.Errorf("the receipt has the type %q instead of %s", s.Type, StatementType)
	case s.PredicateType != PredicateType:
		return fmt.Errorf("the receipt has the predicate type %q; this coven knows %s", s.PredicateType, PredicateType)
	case len(s.Subject) != 2 || s.Subject[0].Name != "commit" || s.Subject[1].Name != "tree" || s.Subject[0].Digest.Tree+s.Subject[1].Digest.Commit != "":
		return errors.New("the receipt must be about a commit and its tree, in this order")
	}
	if err := l.Approval.validate(); err != nil {
		return err
	}
	texts := map[string]string{"task": l.Task, "session": l.Session, "target": l.Target, "strategy": l.Strategy}
	ids := map[string]string{"subject gitCommit": s.Commit(), "subject gitTree": s.Tree(), "oldTip": l.Old}
	if l.Head != "" {
		ids["newTip"] = l.Head
	}
	if err := present(texts, ids); err != nil {
		return err
	}
	for _, c := range l.Checks {
		if err := c.validate(); err != nil {
			return err
		}
	}
	for _, r := range l.Reviews {
		if err := present(map[string]string{"reviewer": r.Reviewer, "verdict": r.Verdict}, map[string]string{"tree of the review by " + r.Reviewer: r.Tree}); err != nil {
			return err
		}
	}
	return nil
}

func (c Check) validate() error {
	if !hash.MatchString(c.Log) || c.ReadOutside != nil && !hash.MatchString(c.ReadOutside.SHA256) {
		return fmt.Errorf("the receipt has a hash of check %s that is no sha256", c.Command)
	}
	return present(map[string]string{"command of a check": c.Command}, map[string]string{"tree of check " + c.Command: c.Tree})
}

func (a Approval) validate() error {
	switch {
	case !a.Required && a != (Approval{}):
		return errors.New("the receipt has an approval that was not required")
	case a.Required && (a.By == "" || a.At.IsZero()):
		return errors.New("the receipt has an approval without a person or a time")
	}
	return nil
}

// present checks that there is each text and each object ID, by the name of the field.
func present(texts, ids map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		if texts[name] == "" {
			return fmt.Errorf("the receipt has no %s", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(ids)) {
		if !objectID.MatchString(ids[name]) {
			return fmt.Errorf("the receipt has the %s %q, which is no object ID", name, ids[name])
		}
	}
	return nil
}

// Differences returns the fields of the predicate in which two statements differ, such as approval.by or checks[0].exitCode, in order.
func Differences(a, b Statement) []string {
	generic := func(s Statement) (value any) {
		text, _ := json.Marshal(s.Predicate) // a value without functions and channels
		_ = json.Unmarshal(text, &value)
		return value
	}
	return differences("", generic(a), generic(b))
}

// differences returns the paths of the fields in which two JSON values differ. Lists of different lengths differ as a whole.
func differences(path string, a, b any) (differ []string) {
	one, object := a.(map[string]any)
	two, both := b.(map[string]any)
	if object && both {
		names := maps.Clone(one)
		maps.Copy(names, two)
		for _, name := range slices.Sorted(maps.Keys(names)) {
			differ = append(differ, differences(strings.TrimPrefix(path+"."+name, "."), one[name], two[name])...)
		}
		return differ
	}
	first, list := a.([]any)
	second, both := b.([]any)
	if list && both && len(first) == len(second) {
		for i := range first {
			differ = append(differ, differences(fmt.Sprintf("%s[%d]", path, i), first[i], second[i])...)
		}
		return differ
	}
	if !reflect.DeepEqual(a, b) {
		differ = []string{path}
	}
	return differ
}
