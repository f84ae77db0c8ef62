package task

import (
	"cmp"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
)

// Values of Options.Choice, and kinds of trackers. Auto is not a kind.
const (
	Auto  = "auto"
	JSONL = "jsonl"
	BD    = "bd"
	BR    = "br"
)

// directoryOnly is the backend of a .beads directory that does not specify one.
const directoryOnly = "beads"

// Tracker stores tasks. All implementations have the same contract: they are safe for
// concurrent use, and other programs may change tasks at any time. Repeating a change
// has no effect.
//
// actor is the author of a change. If it is empty, a person makes the change, and it
// succeeds even if the task is claimed. Otherwise it succeeds only if the task is
// unassigned or assigned to actor, and fails with a *ClaimedError that contains the owner
// if not. A change without effect is not checked. Claim requires an actor.
//
// All methods may return ErrNotFound (wrapped, with the ID), errors of the context, and
// errors of the storage: *CorruptError and *ConflictMarkersError of a file,
// *ProgramError of a program.
type Tracker interface {
	// Kind returns jsonl, bd or br.
	Kind() string
	// Where returns the storage for messages: the file, or the program and its .beads
	// directory.
	Where() string
	// List returns all tasks, including closed ones, by priority, age and ID.
	List(ctx context.Context) ([]Task, error)
	// Ready returns the tasks that can be worked on now, by priority, age and ID. They are open, unassigned, not
	// blocked, not deferred, and neither containers nor records (such as epics,
	// templates, and pinned or ephemeral ones).
	Ready(ctx context.Context) ([]Task, error)
	// Get returns one task.
	Get(ctx context.Context, id string) (Task, error)
	// Blockers returns the IDs of the open tasks that block a task, including
	// ancestors that are blocked or deferred themselves.
	Blockers(ctx context.Context, id string) ([]string, error)
	// Add adds a task and returns it with its new ID. Errors: ErrInvalid,
	// ErrNotFound for a task in After, *CycleError.
	Add(ctx context.Context, n New) (Task, error)
	// Claim claims a task for actor: its status becomes in_progress and its assignee
	// actor. The task must be open, or blocked only by its status, and unassigned or
	// assigned to actor. It may be blocked by the tasks in despite. Errors: ErrClaimed (a *ClaimedError), ErrNotClaimable (a
	// *StatusError), *BlockedError.
	Claim(ctx context.Context, id, actor string, despite ...string) (Task, error)
	// Close closes a task, even if it is blocked. Closing it again changes nothing unless
	// the reason differs: the last reason applies.
	Close(ctx context.Context, id, actor, reason string) (Task, error)
	// Block sets a task's status to blocked, removes its assignee and appends note to
	// its notes. A closed task does not change.
	Block(ctx context.Context, id, actor, note string) (Task, error)
	// Release removes a task's assignee and opens the task if it was in progress or
	// blocked. A non-empty note is appended. A closed task does not change.
	Release(ctx context.Context, id, actor, note string) (Task, error)
	// Note appends note to a task's notes, in any status, unless the notes
	// already end with it.
	Note(ctx context.Context, id, actor, note string) (Task, error)
	// Edit changes the texts, the priority and the labels of a task, in any status. A person makes the change. Errors:
	// ErrInvalid.
	Edit(ctx context.Context, id string, e Edit) (Task, error)
}

var _, _ Tracker = (*File)(nil), (*CLI)(nil)

// Options configures Open.
type Options struct {
	Dir          string // the user's current directory, in a checkout of the repository
	MainCheckout string // of the repository
	LockDir      string // for OpenFile, and for the version of the program
	Choice       string // auto (or empty), bd, br or jsonl

	Getenv   func(string) string          // looks up BEADS_DIR
	Environ  []string                     // environment of the tracker's program
	LookPath func(string) (string, error) // defaults to exec.LookPath
}

// Open finds the tracker of a repository. findDirectory determines the .beads directory, and
// its metadata determines the tracker:
//
//   - bd, if its metadata names a database other than SQLite (dolt);
//   - br, if there is a SQLite database and br is on PATH, because no current bd
//     reads one;
//   - otherwise coven itself, with the JSONL file, which need not exist.
//
// Choice overrides that. The error is a *BackendError if the required program
// is not on PATH, and a *RedirectError if the directory refers to another one.
func Open(o Options) (Tracker, error) {
	beads, err := findDirectory(o.Dir, o.MainCheckout, o.Getenv)
	if err != nil {
		return nil, fmt.Errorf("find tasks: %w", err)
	}
	m, err := readMetadata(beads)
	if err != nil && o.Choice != BD && o.Choice != BR {
		return nil, err
	}
	switch o.Choice {
	case "", Auto:
		return o.choose(beads, m)
	case JSONL:
		return o.file(beads, m)
	case BD, BR:
		return o.program(beads, o.Choice, m)
	}
	return nil, fmt.Errorf("%w: tracker %q is not one of auto, bd, br, jsonl", ErrInvalid, o.Choice)
}

// choose returns the tracker for the choice auto.
func (o Options) choose(beads string, m metadata) (Tracker, error) {
	if err := checkRedirect(beads); err != nil {
		return nil, err
	}
	if !m.readable() {
		return o.program(beads, BD, m)
	}
	database := cmp.Or(m.Database, "beads.db")
	if filepath.Base(database) == database && exists(filepath.Join(beads, database)) {
		if t, err := o.program(beads, BR, m); err == nil {
			return t, nil
		}
	}
	return o.file(beads, m)
}

func (o Options) file(beads string, m metadata) (Tracker, error) {
	if err := checkRedirect(beads); err != nil {
		return nil, err
	}
	name, err := m.fileIn(beads)
	if err != nil {
		return nil, err
	}
	return OpenFile(filepath.Join(beads, name), o.LockDir), nil
}

func (o Options) program(beads, kind string, m metadata) (Tracker, error) {
	look := o.LookPath
	if look == nil {
		look = exec.LookPath
	}
	path, err := look(kind)
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		return nil, &BackendError{Dir: beads, Backend: cmp.Or(m.backend(), directoryOnly), Program: kind, Export: existing(filepath.Join(beads, defaultFile))}
	}
	c := newCLI(kind, path, o.MainCheckout, beads, o.environ(beads))
	c.metadata = m
	if o.LockDir != "" {
		c.versionFile = filepath.Join(o.LockDir, kind+"-version.json")
	}
	return c, nil
}

func existing(path string) string {
	if exists(path) {
		return path
	}
	return ""
}

// environ returns the environment of the tracker's program: the user's, with an absolute
// BEADS_DIR, and with prompts disabled.
func (o Options) environ(beads string) []string {
	var kept []string
	for _, one := range o.Environ {
		name, _, _ := strings.Cut(one, "=")
		if name != "BEADS_DIR" && name != "BD_NON_INTERACTIVE" {
			kept = append(kept, one)
		}
	}
	if o.Getenv("BEADS_DIR") != "" {
		kept = append(kept, "BEADS_DIR="+beads)
	}
	return append(kept, "BD_NON_INTERACTIVE=1")
}
