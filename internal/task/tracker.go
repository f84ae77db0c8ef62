package task

import (
	"cmp"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
)

// The choices of a tracker, and the kinds of them. Auto is no kind.
const (
	Auto  = "auto"
	JSONL = "jsonl"
	BD    = "bd"
	BR    = "br"
)

// directoryOnly stands for the backend of a directory that says nothing of it.
const directoryOnly = "beads"

// Tracker is where tasks live. Every implementation keeps the same contract:
// calls may come from several goroutines, and other programs may change tasks at
// any time. Changes made twice are made once.
//
// actor is who asks for a change. Empty, the change is made whoever has the task:
// a person wants it. Otherwise it is made only while the task is nobody's or the
// actor's, and fails with a *ClaimedError that names the owner if not; a change
// that finds nothing to do does not ask. Claim needs an actor.
//
// Errors of all: ErrNotFound (wrapped, with the id), the context's, and what the
// place of the tasks has: *CorruptError and *ConflictMarkersError of a file,
// *ProgramError of a program.
type Tracker interface {
	// Kind is jsonl, bd or br.
	Kind() string
	// Where names the place for people: the file, or the program and its
	// .beads directory.
	Where() string
	// List returns all tasks, closed ones too, by priority, age and id.
	List(ctx context.Context) ([]Task, error)
	// Ready returns the tasks that could be worked on now: open, unassigned,
	// not blocked, not deferred, and work rather than a container or a record
	// (no epic, template, pinned or ephemeral one), by priority, age and id.
	Ready(ctx context.Context) ([]Task, error)
	// Get returns one task.
	Get(ctx context.Context, id string) (Task, error)
	// Blockers returns the ids of the open tasks that hold a task back; an
	// ancestor that is blocked or deferred itself is among them.
	Blockers(ctx context.Context, id string) ([]string, error)
	// Add adds a task and returns it with its new id. Errors: ErrInvalid,
	// ErrNotFound for one of After, *CycleError.
	Add(ctx context.Context, n New) (Task, error)
	// Claim takes a task for actor: in_progress, with actor as its assignee.
	// It can be had when it is open, or blocked by status only, and nobody's or
	// the actor's. Errors: ErrClaimed (a *ClaimedError), ErrNotClaimable (a
	// *StatusError), *BlockedError.
	Claim(ctx context.Context, id, actor string) (Task, error)
	// Close closes a task, whatever blocks it. Closing it again changes
	// nothing, unless another reason is given: the last one counts.
	Close(ctx context.Context, id, actor, reason string) (Task, error)
	// Block gives a task the status blocked, takes it from its assignee and
	// appends note to its notes. A closed task stays as it is.
	Block(ctx context.Context, id, actor, note string) (Task, error)
	// Release gives a task back: nobody's, and open if it was in progress or
	// blocked; note is appended unless it is empty. A closed task stays as it is.
	Release(ctx context.Context, id, actor, note string) (Task, error)
	// Note appends note to a task's notes, whatever its status, unless it is the
	// last thing there already.
	Note(ctx context.Context, id, actor, note string) (Task, error)
}

var _, _ Tracker = (*File)(nil), (*CLI)(nil)

// Options say where to look for tasks, and how.
type Options struct {
	Dir          string // where the user stands, in a checkout of the repository
	MainCheckout string // of the repository
	LockDir      string // for OpenFile
	Choice       string // auto (or empty), bd, br or jsonl

	Getenv   func(string) string          // asked for BEADS_DIR
	Environ  []string                     // what the tracker's program gets
	LookPath func(string) (string, error) // exec.LookPath when nil
}

// Open finds the tracker of a repository. Which .beads directory counts is what
// Find says; what it says of itself decides who keeps the tasks in it:
//
//   - bd, when its metadata names a database other than SQLite (dolt);
//   - br, when there is a SQLite database and br is on PATH: no bd of today
//     reads one;
//   - else coven itself, in the JSONL file, which need not exist.
//
// Choice overrides that. Errors: *BackendError when the program that is needed
// is not on PATH, and those of Find.
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
		return o.program(beads, o.Choice, cmp.Or(m.backend(), directoryOnly))
	}
	return nil, fmt.Errorf("%w: tracker %q is none of auto, bd, br, jsonl", ErrInvalid, o.Choice)
}

// choose is the choice auto.
func (o Options) choose(beads string, m metadata) (Tracker, error) {
	if err := checkRedirect(beads); err != nil {
		return nil, err
	}
	if !m.readable() {
		return o.program(beads, BD, m.backend())
	}
	database := cmp.Or(m.Database, "beads.db")
	if filepath.Base(database) == database && exists(filepath.Join(beads, database)) {
		if t, err := o.program(beads, BR, "sqlite"); err == nil {
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

func (o Options) program(beads, kind, backend string) (Tracker, error) {
	look := o.LookPath
	if look == nil {
		look = exec.LookPath
	}
	path, err := look(kind)
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		return nil, &BackendError{Dir: beads, Backend: backend, Program: kind, Export: existing(filepath.Join(beads, defaultFile))}
	}
	return newCLI(kind, path, o.MainCheckout, beads, o.environ(beads)), nil
}

func existing(path string) string {
	if exists(path) {
		return path
	}
	return ""
}

// environ is the environment of the tracker's program: the user's, in which
// BEADS_DIR counts from where the program runs, and no questions are asked.
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
