package receipts

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/coven-run/coven/internal/attestation"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/worktree/notes"
)

// The results of a Point.
const (
	OK      = "ok"
	Failed  = "failed"
	Skipped = "skipped" // it could not be verified here
)

// A Point is one part of a verification.
type Point struct {
	Name   string `json:"name"` // form, subject, checks, review, signature, journal, logs or replay
	Result string `json:"result"`
	Detail string `json:"detail"`
}

// Report is the result of verifying the receipt of a commit.
type Report struct {
	Commit    string                 `json:"commit"`
	Tree      string                 `json:"tree"`
	Verified  bool                   `json:"verified"` // no point has failed
	Points    []Point                `json:"points"`
	Signature notes.Signature        `json:"signature,omitzero"`
	Statement *attestation.Statement `json:"statement,omitempty"` // nil if its form is wrong
}

// Add adds a point.
func (r *Report) Add(name, result, format string, args ...any) {
	r.Points = append(r.Points, Point{name, result, fmt.Sprintf(format, args...)})
	r.Verified = r.Verified && result != Failed
}

// Verify verifies the receipt of a commit. If signed is true, the signature must be good. The error is notes.ErrNone if
// the commit has no receipt; a receipt that is wrong is no error.
func Verify(ctx context.Context, p *project.Project, revision string, signed bool) (Report, error) {
	c, err := resolve(ctx, p, revision)
	if err != nil {
		return Report{}, err
	}
	r := Report{Commit: c.Commit, Tree: c.Tree, Verified: true}
	var note notes.Note
	text, err := notes.Read(ctx, p.Repo, c.Commit)
	if err == nil {
		note, err = notes.Parse(text)
	} else if !errors.Is(err, notes.ErrMalformed) {
		return r, err
	}
	if err == nil {
		var s attestation.Statement
		if s, err = attestation.Parse(note.Statement); err == nil {
			r.Statement = &s
		}
	}
	if err != nil {
		r.Add("form", Failed, "%v", err)
		return r, nil
	}
	r.Add("form", OK, "in-toto statement, %s", attestation.PredicateType)
	r.subject(note)
	if err := r.checks(ctx, p, signed); err != nil {
		return r, err
	}
	r.review()
	if r.Signature, err = notes.Verify(ctx, p.Repo, text); err != nil {
		return r, err
	}
	r.signature(signed)
	r.local(p)
	return r, nil
}

// subject compares the commit with those that the note and its statement are about.
func (r *Report) subject(note notes.Note) {
	s := r.Statement
	switch {
	case s.Commit() != r.Commit:
		r.Add("subject", Failed, "the receipt is about commit %.12s: its note was moved here", s.Commit())
	case s.Tree() != r.Tree:
		r.Add("subject", Failed, "the receipt is about tree %.12s, but the commit has tree %.12s", s.Tree(), r.Tree)
	case note.Commit != r.Commit || note.Tree != r.Tree:
		r.Add("subject", Failed, "the note is about commit %.12s and tree %.12s, its receipt about others", note.Commit, note.Tree)
	default:
		r.Add("subject", OK, "commit %.12s and its tree %.12s", r.Commit, r.Tree)
	}
}

// checks reports whether all required checks passed on exactly the landed tree, or on the tree of a stack that landed in
// the same update. A receipt without any proves nothing: if need is true, it fails.
func (r *Report) checks(ctx context.Context, p *project.Project, need bool) error {
	l := r.Statement.Predicate
	stack, passed, stacked := "", 0, false
	if l.Head != "" {
		head, err := notes.Resolve(ctx, p.Repo, l.Head)
		if err != nil {
			return exit.Failedf("git fetch", "commit %.12s, with which the change landed, is not in this repository", l.Head)
		}
		on, err := notes.IsAncestor(ctx, p.Repo, r.Commit, l.Head)
		if err != nil {
			return err
		}
		if on {
			stack = head.Tree
		}
	}
	for _, c := range l.Checks {
		switch {
		case !c.Required:
			continue
		case c.ExitCode != 0:
			r.Add("checks", Failed, "%s ended with exit code %d", c.Command, c.ExitCode)
			return nil
		case c.Tree != r.Tree && (c.Tree != stack || stack == ""):
			r.Add("checks", Failed, "%s ran on tree %.12s instead of tree %.12s, which landed", c.Command, c.Tree, r.Tree)
			return nil
		}
		passed++
		stacked = stacked || c.Tree != r.Tree
	}
	switch {
	case passed == 0 && need:
		r.Add("checks", Failed, "none was required: the receipt does not prove that a check passed")
	case passed == 0:
		r.Add("checks", Skipped, "none was required")
	case stacked:
		r.Add("checks", OK, "%d passed on the tree of commit %.12s, which landed on top of this one in the same update, with %s", passed, l.Head, strings.Join(l.With, ", "))
	default:
		r.Add("checks", OK, "%d passed on exactly this tree", passed)
	}
	return nil
}

// review describes the reviews and the approval.
func (r *Report) review() {
	l := r.Statement.Predicate
	var parts []string
	for _, o := range l.Reviews {
		parts = append(parts, fmt.Sprintf("%s: %s%s", o.Reviewer, o.Verdict, r.elsewhere(o.Tree)))
	}
	if a := l.Approval; a.Required {
		parts = append(parts, fmt.Sprintf("approved by %s at %s%s", a.By, a.At.Format("2006-01-02 15:04:05Z"), r.elsewhere(a.Tree)))
	} else {
		parts = append(parts, "no approval was required")
	}
	r.Add("review", OK, "%s", strings.Join(parts, "; "))
}

// elsewhere returns a remark about a tree that is not the landed one.
func (r *Report) elsewhere(tree string) string {
	if tree == "" || tree == r.Tree {
		return ""
	}
	return fmt.Sprintf(" (on tree %.12s, before the target was merged)", tree)
}

// signature reports the signature. An unknown one fails only if a good one is required.
func (r *Report) signature(required bool) {
	s := r.Signature
	result, detail := Skipped, "the receipt is not signed"
	switch s.Result {
	case notes.Good:
		r.Add("signature", OK, "good, by %s (%s)", s.Signer, s.Key)
		return
	case notes.Bad, notes.Unknown:
		detail = s.Result + ": " + s.Detail
		if s.Key != "" {
			detail = fmt.Sprintf("%s, key %s: %s", s.Result, s.Key, s.Detail)
		}
	}
	if required || s.Result == notes.Bad {
		result = Failed
	}
	r.Add("signature", result, "%s", detail)
}

// local compares the receipt with the session, if it is on this machine.
func (r *Report) local(p *project.Project) {
	id := r.Statement.Predicate.Session
	dir := filepath.Join(p.Repo.Root, session.Dir, id)
	if id != filepath.Base(id) || !filepath.IsLocal(id) {
		r.Add("journal", Failed, "%q is no session", id)
		return
	}
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		r.Add("journal", Skipped, "session %s is not on this machine", id)
		return
	}
	v, err := session.Load(dir)
	if err != nil {
		r.Add("journal", Failed, "session %s: %v", id, err)
		return
	}
	events, err := session.Events(dir)
	if err != nil {
		r.Add("journal", Failed, "session %s: %v", id, err)
		return
	}
	record, err := recordOf(p, dir, v.Task, events)
	if err != nil {
		r.Add("journal", Skipped, "session %s: %v", id, err)
		return
	}
	for _, s := range record.Statements() {
		if s.Commit() != r.Statement.Commit() {
			continue
		}
		if differ := attestation.Differences(*r.Statement, s); len(differ) > 0 {
			r.Add("journal", Failed, "the receipt and the journal of session %s differ in: %s", id, strings.Join(differ, ", "))
		} else {
			r.Add("journal", OK, "agrees with session %s on this machine", id)
		}
		r.logs(dir, s, events)
		return
	}
	r.Add("journal", Failed, "session %s did not land commit %.12s", id, r.Statement.Commit())
}
