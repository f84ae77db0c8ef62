// Package live keeps sessions in progress on a remote, so that another machine can continue them, and so that only one machine at a time can.
//
// A session is one ref of the remote, refs/coven/live/<task>. Its tip is a commit: the tree contains the files of the session's
// record; the parents are the previous tip, the last snapshot of the worktree, and the tip of the task's branch, as far as they exist. The first tip
// has the commit from which the task starts as a parent. So whoever pushes the next one knows a commit of the remote from which little is new.
// The ref moves only from the tip that the pushing machine knows. So one push claims the task, stores the record, and excludes the
// machine that moved the ref before: all its later pushes are refused. A landing moves the target, adds the session to an archive and deletes the ref in one
// atomic push. A lease on a ref that the push does not move would be no fence, because git compares it on the client only.
//
// In the local repository, a ref of the same name is the tip that this machine knows: the one that it has pushed or taken over.
package live

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/coven-run/coven/internal/process/failpoint"
	"github.com/coven-run/coven/worktree/internal/names"
	"github.com/coven-run/coven/worktree/internal/object"
	"github.com/coven-run/coven/worktree/internal/ref"
	"github.com/coven-run/coven/worktree/internal/repo"
	"github.com/coven-run/coven/worktree/remote"
)

// Timeout limits each exchange with a remote.
const Timeout = time.Minute

// fileMode is the mode of each file of a record.
const fileMode = "100644"

// maxFile limits the size of a file of a record in bytes.
const maxFile = 256 << 20

// The lines of the message of a tip.
const (
	sessionLine  = "Coven-Session: "
	snapshotLine = "Snapshot: "
	branchLine   = "Branch-Tip: "
	mergedLine   = "Merged: "
	rebasedLine  = "Rebased: "
)

// ErrDamaged means that a tip is not that of a session.
var ErrDamaged = errors.New("damaged")

// Ref returns the ref of a task's session.
func Ref(taskID string) string { return names.LivePrefix + names.SafeName(taskID) }

// A State is a session at one tip.
type State struct {
	Tip      string // commit
	Session  string
	Base     string // the commit from which the task starts; only for the first tip
	Snapshot string // the last snapshot, or empty
	Branch   Branch
	Files    map[string][]byte
}

// Branch is the branch of a task. Merged and Rebased are as in the record of a worktree.
type Branch struct {
	Tip             string // or empty
	Merged, Rebased []string
}

// Known returns the tip of a task's session that this machine knows, or "".
func Known(ctx context.Context, r *repo.Repo, taskID string) (string, error) {
	tip, err := r.Git().Ref(ctx, Ref(taskID))
	if errors.Is(err, ref.ErrNoRef) {
		return "", nil
	}
	return tip, err
}

// Tips returns the tips of all sessions of a remote, by ref.
func Tips(ctx context.Context, r *repo.Repo, name string) (map[string]string, error) {
	return remote.Refs(ctx, r, name, Timeout, names.LivePrefix+"*")
}

// Tip returns the tip of a task's session at a remote, or "".
func Tip(ctx context.Context, r *repo.Repo, name, taskID string) (string, error) {
	found, err := remote.Refs(ctx, r, name, Timeout, Ref(taskID))
	return found[Ref(taskID)], err
}

// Fetch fetches a tip of a task's session from a remote, unless it is here, and reads it.
func Fetch(ctx context.Context, r *repo.Repo, name, taskID, tip string) (State, error) {
	if has, err := r.Git().HasCommit(ctx, tip); err != nil || !has {
		if err := remote.Fetch(ctx, r, name, Timeout, Ref(taskID)); err != nil {
			return State{}, fmt.Errorf("fetch the session of %s: %w", taskID, err)
		}
	}
	return Read(ctx, r, tip)
}

// FetchAll fetches the tips of the sessions of a remote, and reads them, by ref. It omits those that have moved since tips were listed. Those that cannot be read are in
// damaged, by ref.
func FetchAll(ctx context.Context, r *repo.Repo, name string, tips map[string]string) (states map[string]State, damaged map[string]error) {
	var missing []string
	for ref, tip := range tips {
		if has, err := r.Git().HasCommit(ctx, tip); err != nil || !has {
			missing = append(missing, ref)
		}
	}
	if len(missing) > 0 && remote.Fetch(ctx, r, name, Timeout, missing...) != nil {
		for _, ref := range missing { // one of them may have been deleted meanwhile
			_ = remote.Fetch(ctx, r, name, Timeout, ref)
		}
	}
	states, damaged = map[string]State{}, map[string]error{}
	for ref, tip := range tips {
		if has, err := r.Git().HasCommit(ctx, tip); err != nil || !has {
			continue
		}
		if s, err := Read(ctx, r, tip); err != nil {
			damaged[ref] = err
		} else {
			states[ref] = s
		}
	}
	return states, damaged
}

// Read reads a session at a tip in this repository. The error is ErrDamaged if it is none.
func Read(ctx context.Context, r *repo.Repo, tip string) (State, error) {
	s, err := read(ctx, r, tip)
	if err != nil {
		return s, fmt.Errorf("the session at %.12s is %w: %w", tip, ErrDamaged, err)
	}
	return s, nil
}

func read(ctx context.Context, r *repo.Repo, tip string) (State, error) {
	if !object.IsID(tip) {
		return State{}, fmt.Errorf("%q is not a commit", tip)
	}
	c, err := r.Git().Commit(ctx, tip)
	if err != nil {
		return State{}, err
	}
	s := parse(c.Message)
	s.Tip = tip
	for _, oid := range []string{s.Snapshot, s.Branch.Tip} { // only what the remote keeps with the tip
		if oid != "" && !slices.Contains(c.Parents, oid) {
			return s, fmt.Errorf("it has no parent %q", oid)
		}
	}
	for _, oid := range slices.Concat(s.Branch.Merged, s.Branch.Rebased) {
		if !object.IsID(oid) {
			return s, fmt.Errorf("%q is not a commit", oid)
		}
	}
	return s, s.read(ctx, r, c.Tree)
}

// read reads the files in a tree. Several may have the same content.
func (s *State) read(ctx context.Context, r *repo.Repo, tree string) error {
	entries, err := r.Git().Level(ctx, tree)
	if err != nil {
		return err
	}
	paths, oids := map[string][]string{}, []string(nil)
	for _, e := range entries {
		if e.Mode != fileMode {
			return fmt.Errorf("%q is not a file", e.Path)
		}
		if len(paths[e.Oid]) == 0 {
			oids = append(oids, e.Oid)
		}
		paths[e.Oid] = append(paths[e.Oid], e.Path)
	}
	return r.Git().Objects(ctx, oids, func(o object.Object, body io.Reader) error {
		if o.Size > maxFile {
			return fmt.Errorf("%q has %d bytes", paths[o.Oid], o.Size)
		}
		content, err := io.ReadAll(io.LimitReader(body, maxFile))
		for _, path := range paths[o.Oid] {
			s.Files[path] = content
		}
		return err
	})
}

// parse parses the message of a tip.
func parse(message string) State {
	s := State{Files: map[string][]byte{}}
	for line := range strings.Lines(message) {
		key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch key + ": " {
		case sessionLine:
			s.Session = value
		case snapshotLine:
			s.Snapshot = value
		case branchLine:
			s.Branch.Tip = value
		case mergedLine:
			s.Branch.Merged = strings.Fields(value)
		case rebasedLine:
			s.Branch.Rebased = strings.Fields(value)
		}
	}
	return s
}

// Store stores a session as a commit after the tip s.Tip, which may be empty, and returns it. Nothing moves.
func Store(ctx context.Context, r *repo.Repo, taskID string, s State) (string, error) {
	var entries []object.Entry
	for path, content := range s.Files {
		oid, err := r.Git().Blob(ctx, content)
		if err != nil {
			return "", fmt.Errorf("store the session of %s: %w", taskID, err)
		}
		entries = append(entries, object.Entry{Mode: fileMode, Oid: oid, Path: path})
	}
	slices.SortFunc(entries, func(a, b object.Entry) int { return strings.Compare(a.Path, b.Path) })
	tree, err := r.Git().MakeTree(ctx, entries)
	if err != nil {
		return "", fmt.Errorf("store the session of %s: %w", taskID, err)
	}
	message := "coven: session of " + taskID + "\n\n" + sessionLine + s.Session + "\n"
	var parents []string
	for _, p := range []struct{ line, oid string }{{"", cmp.Or(s.Tip, s.Base)}, {snapshotLine, s.Snapshot}, {branchLine, s.Branch.Tip}} {
		if p.oid == "" {
			continue
		}
		if p.line != "" {
			message += p.line + p.oid + "\n"
		}
		if !slices.Contains(parents, p.oid) {
			parents = append(parents, p.oid)
		}
	}
	for line, oids := range map[string][]string{mergedLine: s.Branch.Merged, rebasedLine: s.Branch.Rebased} {
		if len(oids) > 0 {
			message += line + strings.Join(oids, " ") + "\n"
		}
	}
	tip, err := r.MakeCommit(ctx, tree, message, nil, parents...)
	if err != nil {
		return "", fmt.Errorf("store the session of %s: %w", taskID, err)
	}
	return tip, nil
}

// Push stores a session after the tip s.Tip that this machine knows, moves the ref of the remote to it, and returns it. The error is a *remote.MovedError if the
// remote has another tip.
func Push(ctx context.Context, r *repo.Repo, name, taskID string, s State) (string, error) {
	tip, err := Store(ctx, r, taskID, s)
	if err != nil {
		return "", err
	}
	failpoint.Point("live.stored")
	if err := remote.MoveRefs(ctx, r, name, Timeout, remote.Move{Ref: Ref(taskID), Old: s.Tip, New: tip}); err != nil {
		return "", err
	}
	failpoint.Point("live.pushed")
	return tip, Know(ctx, r, taskID, tip)
}

// Know makes tip the one that this machine knows; an empty tip means that it knows none.
func Know(ctx context.Context, r *repo.Repo, taskID, tip string) error {
	old, err := Known(ctx, r, taskID)
	if err != nil || old == tip {
		return err
	}
	edit := ref.Move(Ref(taskID), tip, old)
	switch {
	case old == "":
		edit = ref.Create(Ref(taskID), tip)
	case tip == "":
		edit = ref.Delete(Ref(taskID), old)
	}
	return r.Transact(ctx, r.Git(), "coven: session", edit)
}

// Drop deletes the ref of a session without its archive.
func Drop(ctx context.Context, r *repo.Repo, name, taskID, tip string) error {
	if err := remote.MoveRefs(ctx, r, name, Timeout, remote.Move{Ref: Ref(taskID), Old: tip}); err != nil {
		return err
	}
	failpoint.Point("live.dropped")
	return Know(ctx, r, taskID, "")
}

// LandedAs returns the newest commit between base and tip that a task has landed as, or "".
func LandedAs(ctx context.Context, r *repo.Repo, taskID, base, tip string) (string, error) {
	if base == tip {
		return "", nil
	}
	trailer := "Coven-Task: " + strings.Join(strings.Fields(taskID), " ")
	out, err := r.Git().Output(ctx, "log", "--no-patch", "--no-show-signature", "--fixed-strings", "--grep="+trailer, "--format=%H%x00%(trailers:key=Coven-Task,unfold=true)%x00", base+".."+tip)
	if err != nil {
		return "", fmt.Errorf("look for the landing of %s: %w", taskID, err)
	}
	for fields := bytes.Split(out, []byte{0}); len(fields) > 1; fields = fields[2:] {
		if slices.Contains(strings.Split(string(fields[1]), "\n"), trailer) {
			return strings.TrimSpace(string(fields[0])), nil
		}
	}
	return "", nil
}
