// Package collisions predicts conflicts between tasks while they run: it merges their snapshots in pairs, without changing
// anything. The results are for people and agents; nothing depends on them but the order in which tasks start.
package collisions

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/process/clock"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/session/collision"
	"github.com/coven-run/coven/internal/terminal"
	"github.com/coven-run/coven/internal/text/oneline"
	"github.com/coven-run/coven/worktree/claim"
	"github.com/coven-run/coven/worktree/predict"
)

// The values of the setting run.collisions.
const (
	Off       = "off"
	Tell      = "tell"
	Serialize = "serialize"
)

// interval is the shortest time between two comparisons.
const interval = time.Second

// Radar compares the sessions of this process with all open sessions of the repository that land on the same target.
type Radar struct {
	project *project.Project
	notify  func(text string)
	wake    chan struct{}

	mu    sync.Mutex
	dirty map[string]bool // sessions that may have changed
	own   map[string]bool // sessions of this process

	// Only the goroutine of Start uses the following fields.
	begun   map[string]event.Session
	changes map[string]predict.Change
	results map[[2]string][]string // conflicts, by the commits of the snapshots
	last    map[string]string      // the last result of a session, as text
	tips    map[string]string      // commits of the targets, by their refs
	told    map[string]bool        // what people and agents know
}

// New returns a Radar that is not started. notify is called with each new prediction.
func New(p *project.Project, notify func(text string)) *Radar {
	return &Radar{
		project: p, notify: notify, wake: make(chan struct{}, 1), dirty: map[string]bool{}, own: map[string]bool{},
		begun: map[string]event.Session{}, changes: map[string]predict.Change{}, results: map[[2]string][]string{}, last: map[string]string{}, tips: map[string]string{}, told: map[string]bool{},
	}
}

// See receives the events of running sessions. It is safe for concurrent use.
func (r *Radar) See(e event.Event) {
	switch e.Type {
	case event.StepStarted, event.StepCompleted, event.GateDecided, event.SnapshotTaken:
	default:
		return
	}
	r.mu.Lock()
	r.dirty[e.Session], r.own[e.Session] = true, true
	r.mu.Unlock()
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Start compares sessions until stop is called or the context ends. If predictions are off, it does nothing.
func (r *Radar) Start(ctx context.Context) (stop func()) {
	if r.project.Repo == nil || r.project.Config.Run.Collisions == Off {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() {
		for r.await(ctx) {
			if err := r.compare(ctx); err != nil && ctx.Err() == nil {
				r.say("warning: conflicts cannot be predicted: " + oneline.Of(err.Error()))
			}
			if clock.SleepUntil(ctx, clock.Now().Add(interval)) != nil {
				return
			}
		}
	})
	return func() {
		cancel()
		running.Wait()
	}
}

func (r *Radar) await(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case <-r.wake:
		return true
	}
}

// say notifies once of each text.
func (r *Radar) say(text string) {
	if !r.told[text] {
		r.told[text] = true
		r.notify(text)
	}
}

// compare compares the sessions that may have changed with the others.
func (r *Radar) compare(ctx context.Context) error {
	r.mu.Lock()
	dirty := r.dirty
	r.dirty = map[string]bool{}
	r.mu.Unlock()
	claims, err := claim.List(ctx, r.project.Repo)
	if err != nil {
		return err
	}
	r.forget(claims)
	moved, broken := r.moved(ctx, claims)
	for _, held := range claims {
		if dirty[held.Session] || moved[held.Session] {
			broken = errors.Join(broken, r.compareWith(ctx, held, claims))
		}
	}
	return broken
}

// moved returns the sessions of this process whose target has moved since the last call. It remembers the tips of the targets.
func (r *Radar) moved(ctx context.Context, claims []claim.Held) (map[string]bool, error) {
	tips, moved := map[string]string{}, map[string]bool{}
	var broken error
	for _, held := range claims {
		mine, ok := r.info(held.Session)
		if !ok {
			continue
		}
		if _, known := tips[mine.Target]; !known {
			tip, err := predict.Tip(ctx, r.project.Repo, mine.Target)
			tips[mine.Target], broken = tip, errors.Join(broken, err)
		}
		moved[held.Session] = r.isOwn(held.Session) && tips[mine.Target] != r.tips[mine.Target]
	}
	r.tips = tips
	return moved, broken
}

func (r *Radar) isOwn(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.own[id]
}

// maxResults limits the remembered results.
const maxResults = 10_000

// forget removes the predictions of sessions without a claim.
func (r *Radar) forget(claims []claim.Held) {
	over := func(id string) bool {
		return !slices.ContainsFunc(claims, func(held claim.Held) bool { return held.Session == id })
	}
	maps.DeleteFunc(r.changes, func(id string, _ predict.Change) bool { return over(id) })
	maps.DeleteFunc(r.begun, func(id string, _ event.Session) bool { return over(id) })
	maps.DeleteFunc(r.last, func(id, _ string) bool { return over(id) })
	if len(r.results) > maxResults {
		clear(r.results)
	}
}

// compareWith compares a session with the sessions that have the other claims.
func (r *Radar) compareWith(ctx context.Context, own claim.Held, claims []claim.Held) error {
	mine, ok := r.info(own.Session)
	if !ok {
		return nil
	}
	found := collision.Compared{Session: own.Session, Task: own.Task}
	for _, other := range claims {
		theirs, ok := r.info(other.Session)
		if !ok || other.Session == own.Session || theirs.Target != mine.Target {
			continue
		}
		files, err := r.conflicts(ctx, own.Session, mine.Base, other.Session, theirs.Base)
		if err != nil {
			return err
		}
		found.With = append(found.With, collision.Collision{Session: other.Session, Task: other.Task, Files: append([]string{}, files...)})
	}
	if tip := r.tips[mine.Target]; tip != "" && tip != mine.Base {
		files, err := r.withTarget(ctx, own.Session, mine.Base, tip)
		if err != nil {
			return err
		}
		found.With = append(found.With, collision.Collision{Target: mine.Target, Files: append([]string{}, files...)})
	}
	text := fmt.Sprint(found)
	if len(found.With) == 0 || r.last[own.Session] == text {
		return nil
	}
	r.last[own.Session] = text
	for i := range found.With {
		found.With[i].Seen = r.project.Env.Now()
	}
	live := func(id string) bool {
		return slices.ContainsFunc(claims, func(held claim.Held) bool { return held.Session == id })
	}
	if err := collision.Write(r.project.Repo.Root, found, live); err != nil {
		return err
	}
	return r.tell(found)
}

// info returns the beginning of a session. ok is false if it has not begun.
func (r *Radar) info(id string) (event.Session, bool) {
	known, ok := r.begun[id]
	if ok {
		return known, true
	}
	first, err := session.Events(filepath.Join(r.project.Repo.Root, session.Dir, id), event.SessionStarted)
	if err != nil || len(first) == 0 {
		return known, false
	}
	r.begun[id] = event.As[event.Session](first[0])
	return r.begun[id], true
}

// conflicts returns the files in which the changes of two sessions conflict.
func (r *Radar) conflicts(ctx context.Context, one, oneBase, two, twoBase string) ([]string, error) {
	a, err := r.change(ctx, one, oneBase)
	if err != nil {
		return nil, err
	}
	b, err := r.change(ctx, two, twoBase)
	if err != nil {
		return nil, err
	}
	key := [2]string{min(a.Snapshot.Commit, b.Snapshot.Commit), max(a.Snapshot.Commit, b.Snapshot.Commit)}
	if files, known := r.results[key]; known {
		return files, nil
	}
	files, err := predict.Conflicts(ctx, r.project.Repo, a, b)
	if err == nil {
		r.results[key] = files
	}
	return files, err
}

// withTarget returns the files in which the change of a session conflicts with its target.
func (r *Radar) withTarget(ctx context.Context, id, base, tip string) ([]string, error) {
	c, err := r.change(ctx, id, base)
	if err != nil {
		return nil, err
	}
	key := [2]string{c.Snapshot.Commit, tip}
	if files, known := r.results[key]; known {
		return files, nil
	}
	files, err := predict.WithTarget(ctx, r.project.Repo, c, base, tip)
	if err == nil {
		r.results[key] = files
	}
	return files, err
}

func (r *Radar) change(ctx context.Context, id, base string) (predict.Change, error) {
	c, err := predict.Of(ctx, r.project.Repo, id, base, r.changes[id])
	if err == nil {
		r.changes[id] = c
	}
	return c, err
}

// tell notifies people of new predictions, and the agents if the settings say so.
func (r *Radar) tell(found collision.Compared) error {
	var broken error
	for _, with := range found.With {
		if len(with.Files) == 0 {
			continue
		}
		if with.Target != "" {
			r.say("task " + found.Task + " " + Text(with))
			continue
		}
		one, two := found.Task, with.Task
		if one > two {
			one, two = two, one
		}
		files := fileList(with.Files)
		text := fmt.Sprintf("tasks %s and %s will conflict in %s", one, two, files)
		if r.told[text] {
			continue
		}
		r.say(text)
		if setting := r.project.Config.Run.Collisions; setting == Tell || setting == Serialize {
			broken = errors.Join(broken, r.tellAgent(found.Session, with.Task, files), r.tellAgent(with.Session, found.Task, files))
		}
	}
	return broken
}

// tellAgent sends the agent of a running session of this process a message, which it gets before its next turn.
func (r *Radar) tellAgent(id, other, files string) error {
	root := r.project.Repo.Root
	if !r.isOwn(id) || !session.Busy(filepath.Join(root, session.Dir, id)) {
		return nil
	}
	text := fmt.Sprintf("Task %s, which has not landed yet, changes the same places as you: its change and yours would conflict in %s. "+
		"Keep your changes to these files small, and change nothing there that your task does not need.", other, files)
	_, err := session.Ask(root, id, session.Request{Kind: session.KindMessage, Text: text, By: "coven", Time: r.project.Env.Now()})
	return err
}

// maxFiles is the number of files that a message names.
const maxFiles = 5

// fileList lists files as text for people.
func fileList(files []string) string {
	var names []string
	for _, f := range files[:min(len(files), maxFiles)] {
		names = append(names, terminal.Printable(oneline.Of(f)))
	}
	text := strings.Join(names, ", ")
	if more := len(files) - maxFiles; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// Text describes a predicted conflict of a task.
func Text(c collision.Collision) string {
	return "will conflict with " + terminal.Printable(cmp.Or(c.Task, event.BranchName(c.Target))) + " in " + fileList(c.Files)
}
