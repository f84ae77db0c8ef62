// Package receipts stores the receipts of landings and verifies them.
package receipts

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/coven-run/coven/internal/attestation"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/worktree/notes"
)

// An UnsignedError means that a stored receipt is not signed, although the user has a key.
type UnsignedError struct {
	Commit string
	Err    error
}

func (e *UnsignedError) Error() string {
	return fmt.Sprintf("the receipt of commit %.12s is not signed: %v", e.Commit, e.Err)
}

func (e *UnsignedError) Unwrap() error { return e.Err }

// NextCommand returns the command that stores the receipt again.
func (e *UnsignedError) NextCommand() string {
	return "git notes --ref=coven remove " + e.Commit + " && " + storeCommand(e.Commit)
}

// storeCommand returns the command that stores the receipt of a landed commit.
func storeCommand(commit string) string { return "coven verify --store " + commit }

// recordOf returns the record of a session.
func recordOf(p *project.Project, dir, task string, events []event.Event) (attestation.Record, error) {
	plan, err := project.PlanOf(dir)
	if err != nil {
		return attestation.Record{}, err
	}
	return attestation.Record{
		Task: task, Session: filepath.Base(dir), Events: events, Setup: plan.Worktree.Setup, Required: plan.Proves, Hide: p.Hidden,
	}, nil
}

// Store stores the receipt of each commit that a session has landed and that has none. The error is an *UnsignedError if
// the receipt is stored.
func Store(ctx context.Context, p *project.Project, dir, task string, events []event.Event) error {
	record, err := recordOf(p, dir, task, events)
	if err != nil {
		return err
	}
	var unsigned error
	for _, s := range record.Statements() {
		if s.Tree() == "" {
			continue // another machine has landed it, and has the receipt
		}
		why, err := store(ctx, p, s)
		if err != nil {
			return &exit.Error{Exit: exit.Failed, Err: err, Next: storeCommand(s.Commit())}
		}
		if why != nil {
			unsigned = &UnsignedError{s.Commit(), why}
		}
	}
	return unsigned
}

func store(ctx context.Context, p *project.Project, s attestation.Statement) (unsigned, err error) {
	if has, err := notes.Has(ctx, p.Repo, s.Commit()); has || err != nil {
		return nil, err
	}
	text, err := s.Text()
	if err != nil {
		return nil, err
	}
	return notes.Store(ctx, p.Repo, notes.Landed{Commit: s.Commit(), Tree: s.Tree()}, text)
}

// StoreOf stores the receipt of a commit that a session of this project has landed.
func StoreOf(ctx context.Context, p *project.Project, revision string) error {
	c, err := resolve(ctx, p, revision)
	if err != nil {
		return err
	}
	all, broken := session.List(p.Repo.Root)
	for _, v := range all {
		if v.Landed.New != c.Commit {
			continue
		}
		events, err := session.Events(v.Dir)
		if err != nil {
			return fmt.Errorf("read session %s: %w", v.ID, err)
		}
		return Store(ctx, p, v.Dir, v.Task, events)
	}
	if broken != nil {
		return broken
	}
	return exit.Failedf("coven status --all", "no session on this machine landed commit %.12s", c.Commit)
}

func resolve(ctx context.Context, p *project.Project, revision string) (notes.Landed, error) {
	c, err := notes.Resolve(ctx, p.Repo, revision)
	if err != nil {
		return c, exit.Failedf("git fetch", "no commit %q in this repository", revision)
	}
	return c, nil
}
