package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/config/check"
	"github.com/coven-run/coven/internal/driver"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/plugins/arbiter"
	"github.com/coven-run/coven/plugins/hostservice"
	"github.com/coven-run/coven/plugins/pluginerr"
	"github.com/coven-run/coven/plugins/reviewer"
)

type fakeJournal struct {
	mu     sync.Mutex
	events []event.Event
	logs   map[string]*strings.Builder
	broken error // error of the next Append
}

func (j *fakeJournal) Events() []event.Event {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.events)
}

func (j *fakeJournal) Append(e event.Event, data any) error {
	text, err := json.Marshal(data)
	j.mu.Lock()
	defer j.mu.Unlock()
	if broken := j.broken; broken != nil {
		j.broken = nil
		return broken
	}
	e.Seq, e.Data, e.Time = int64(len(j.events))+1, text, time.Unix(int64(len(j.events)), 0)
	j.events = append(j.events, e)
	return err
}

func (j *fakeJournal) OpenLog(path string) (io.WriteCloser, int64, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.logs == nil {
		j.logs = map[string]*strings.Builder{}
	}
	if j.logs[path] == nil {
		j.logs[path] = &strings.Builder{}
	}
	return nopCloser{j.logs[path]}, int64(j.logs[path].Len()), nil
}

func (j *fakeJournal) ReadLog(path string, from int64) (io.ReadCloser, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.logs[path] == nil {
		return nil, fs.ErrNotExist
	}
	return io.NopCloser(strings.NewReader(j.logs[path].String()[from:])), nil
}

// count returns the number of recorded events of a type.
func (j *fakeJournal) count(kind event.Type) (n int) {
	for _, e := range j.Events() {
		if e.Type == kind {
			n++
		}
	}
	return n
}

// last returns the last event and its data.
func (j *fakeJournal) last(t *testing.T, data any) event.Type {
	t.Helper()
	events := j.Events()
	e := events[len(events)-1]
	if err := e.Decode(data); err != nil {
		t.Fatal(err)
	}
	return e.Type
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

type fakeTracker struct {
	calls []string
	err   error
}

func (f *fakeTracker) call(text string) error {
	f.calls = append(f.calls, text)
	return f.err
}

func (f *fakeTracker) Close(_ context.Context, summary, commit string) error {
	return f.call("close " + commit + ": " + summary)
}

func (f *fakeTracker) Block(_ context.Context, why string) error { return f.call("block: " + why) }

func (f *fakeTracker) Release(_ context.Context, why string) error { return f.call("release" + why) }

func (f *fakeTracker) Note(_ context.Context, text string) error { return f.call("note: " + text) }

// fakeClaims is a claim that may be held.
type fakeClaims struct {
	held bool
	err  error
}

func (f *fakeClaims) Claim(context.Context) (event.Claim, error) {
	f.held = f.err == nil
	return event.Claim{Oid: "claim"}, f.err
}

func (f *fakeClaims) Release(context.Context) error {
	f.held = false
	return nil
}

// fakeWorkspace is a worktree whose content is the name of a tree.
type fakeWorkspace struct {
	tree    string
	tips    []string // tips of the branch: each is returned once, the last repeatedly
	entered int
	left    []string // the tips that had landed
	putTip  string
	err     error // error of Enter
	number  int   // number of the worktree; 0 means 1

	differ   map[string][]string // files that differ between two trees or snapshots: "t1 t2"
	notes    []string            // notes of snapshots
	restored []string            // restored snapshots
	lost     string              // the snapshot that cannot be restored
	messages []string            // messages of commits
	merges   []string            // commits of the target that were merged
	refuses  *RefusedError       // error of Commit

	changes []*event.RepositoryChange // changes while programs run: each is returned once
	watches string                    // the calls: w, c, d
}

func (f *fakeWorkspace) Watch(context.Context) error {
	f.watches += "w"
	return nil
}

func (f *fakeWorkspace) Compare(context.Context) (change *event.RepositoryChange, err error) {
	f.watches += "c"
	if len(f.changes) > 0 {
		change, f.changes = f.changes[0], f.changes[1:]
	}
	return change, nil
}

func (f *fakeWorkspace) EndWatch() error {
	f.watches += "d"
	return nil
}

func (f *fakeWorkspace) Enter(context.Context) (int, error) {
	f.entered++
	return max(f.number, 1), f.err
}

func (f *fakeWorkspace) Leave(_ context.Context, landed string) (string, error) {
	f.left = append(f.left, landed)
	return "", nil
}

func (f *fakeWorkspace) Snapshot(_ context.Context, note string) (event.Snapshot, error) {
	f.notes = append(f.notes, note)
	return event.Snapshot{N: 1, Commit: snapshotOf + f.tree, Tree: f.tree}, nil
}

// snapshotOf is the prefix of a snapshot's name, before that of the tree.
const snapshotOf = "snapshot of "

func (f *fakeWorkspace) Restore(_ context.Context, commit string) error {
	if f.lost != "" && commit == f.lost {
		return errors.New("cannot restore " + commit)
	}
	f.restored = append(f.restored, commit)
	f.tree = strings.TrimPrefix(commit, snapshotOf)
	return nil
}

func (f *fakeWorkspace) Changed(_ context.Context, from, to string) ([]string, error) {
	if files, ok := f.differ[from+" "+to]; ok || from == to {
		return files, nil
	}
	return []string{"a.go"}, nil
}

func (f *fakeWorkspace) Tree(context.Context) (string, error) { return f.tree, nil }

func (f *fakeWorkspace) Commit(_ context.Context, message, merges string) (Commit, error) {
	if f.refuses != nil {
		return Commit{}, f.refuses
	}
	f.messages = append(f.messages, message)
	if merges != "" {
		f.merges = append(f.merges, merges)
	}
	return Commit{Oid: "c", Tree: f.tree}, nil
}

func (f *fakeWorkspace) Tip(context.Context) (string, error) {
	if len(f.tips) > 1 {
		f.tips = f.tips[1:]
	}
	return f.tips[0], nil
}

func (f *fakeWorkspace) PutTip(_ context.Context, tip, _ string) (string, error) {
	f.putTip = tip
	return "refs/coven/rescue/t/1", nil
}

// fakeLanding can land one candidate repeatedly.
type fakeLanding struct {
	candidate event.Landing
	landed    []event.Landing
	messages  []string
	err       error   // error of Integrate
	errs      []error // errors of consecutive calls of Land
	recovers  bool    // an interrupted landing has landed
	recovered int
	turn      time.Duration // time to wait for the turn
	released  int
	target    string   // commit merged by Conflict, empty if there is no conflict
	files     []string // files in conflict
	refuses   *RefusedError
	workspace *fakeWorkspace
	push      string // result of PushCommand
	doing     []string
}

func (f *fakeLanding) PushCommand(context.Context) (string, error) { return f.push, f.err }

func (f *fakeLanding) Integrate(context.Context) (event.Landing, error) { return f.candidate, f.err }

func (f *fakeLanding) Turn(context.Context) (Turn, error) {
	<-time.After(f.turn)
	return Turn{Doing: func(what string) { f.doing = append(f.doing, what) }, Release: func() { f.released++ }}, nil
}

func (f *fakeLanding) Conflict(context.Context) (event.Merging, error) {
	if f.refuses != nil {
		return event.Merging{}, f.refuses
	}
	if f.target != "" {
		f.workspace.tree = "conflicted"
	}
	return event.Merging{Target: f.target, Files: f.files}, nil
}

func (f *fakeLanding) Stack(context.Context, event.Landing) (event.Landing, error) {
	return event.Landing{}, f.err
}

func (f *fakeLanding) Land(_ context.Context, changes []Change) ([]event.Landing, error) {
	if len(f.errs) > 0 {
		err := f.errs[0]
		f.errs = f.errs[1:]
		return nil, err
	}
	l := changes[0].Candidate
	l.New = "new"
	f.landed, f.messages = append(f.landed, l), append(f.messages, changes[0].Message)
	return []event.Landing{l}, changes[0].Intent(l)
}

func (f *fakeLanding) Recover(context.Context, event.Landing) (bool, error) {
	f.recovered++
	return f.recovers, nil
}

// fakeAgents runs the functions in order.
type fakeAgents struct {
	next  []func(run AgentRun) (driver.Report, error)
	err   error // result when there are no functions left
	runs  []AgentRun
	limit error // error of Await

	readers map[string][2]string // provider and model, by definition

	recalled driver.Report // report of an interrupted run
	complete bool          // the interrupted run had given its result

	transcripts []string // read by Recall
}

func (f *fakeAgents) Await(context.Context, string, string) error { return f.limit }

func (f *fakeAgents) Run(_ context.Context, run AgentRun) (driver.Report, error) {
	f.runs = append(f.runs, run)
	if len(f.next) == 0 {
		return driver.Report{}, f.err
	}
	next := f.next[0]
	f.next = f.next[1:]
	return next(run)
}

func (*fakeAgents) Instructions(context.Context, AgentRun) ([]grimoires.PromptPart, error) {
	return nil, nil
}

func (f *fakeAgents) Reader(name string) (provider, model string, err error) {
	d, ok := f.readers[name]
	if !ok {
		return "", "", pluginerr.ErrInvalid
	}
	return d[0], d[1], nil
}

func (f *fakeAgents) Recall(_ context.Context, _ string, transcript io.Reader) (driver.Report, bool, error) {
	text, err := io.ReadAll(transcript)
	if err != nil {
		return driver.Report{}, false, err
	}
	f.transcripts = append(f.transcripts, string(text))
	return f.recalled, f.complete, nil
}

// Start returns no commit: checks that fail do not run without the change.
func (f *fakeCommands) Start(context.Context) (string, error) { return "", nil }

func (f *fakeCommands) Rehearse(context.Context, string) error { return nil }

func (f *fakeCommands) Prepared(context.Context) ([]string, error) { return nil, nil }

// fakeCommands runs commands that end with an exit code.
type fakeCommands struct {
	exits map[string]int
	ran   []string
	does  func(c Command) (Ran, error) // may be nil
	hangs bool                         // until its context ends

	beside []string // tasks whose checks run at the same time
	alone  []string // commands that ran alone
	waits  string   // the reason why checks wait for an hour
}

func (f *fakeCommands) Reserve(_ context.Context, c check.Check, alone bool, waiting func(string) error) (Reservation, error) {
	if alone {
		f.alone = append(f.alone, c.Run)
	}
	if f.waits != "" {
		if err := waiting(f.waits); err != nil {
			return Reservation{}, err
		}
		<-time.After(time.Hour)
	}
	return Reservation{Beside: func() []string { return f.beside }, Release: func() {}}, nil
}

func (f *fakeCommands) Run(ctx context.Context, c Command) (Ran, error) {
	f.ran = append(f.ran, c.Shell)
	if f.hangs {
		<-ctx.Done()
		return Ran{}, ctx.Err()
	}
	if f.does != nil {
		return f.does(c)
	}
	return Ran{ExitCode: f.exits[c.Shell], Output: fmt.Sprintf("output of %s", c.Shell)}, nil
}

// fakeReviewers answers by plugin.
type fakeReviewers struct {
	workspace *fakeWorkspace
	reviews   map[string]reviewer.Review
	decision  arbiter.Decision
	changes   string // the tree to which a plugin changes the worktree
	empty     bool   // there is no change
	asks      *hostservice.Ask
	ends      func() // called by a plugin that gives no answer

	mu    sync.Mutex
	given map[string]reviewer.Change // by plugin
}

func (f *fakeReviewers) Change(context.Context) (reviewer.Change, string, error) {
	change := reviewer.Change{Tree: f.workspace.tree, Files: []reviewer.File{{Path: "a.go"}}}
	if f.empty {
		change.Files = nil
	}
	return change, "p1", nil
}

func (f *fakeReviewers) Review(ctx context.Context, plugin string, change reviewer.Change, services *HostServices) (reviewer.Review, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.given[plugin] = change
	if f.asks != nil {
		if _, err := services.Ask(ctx, *f.asks); err != nil {
			return reviewer.Review{}, err
		}
	}
	if f.changes != "" {
		f.workspace.tree = f.changes
	}
	r, ok := f.reviews[plugin]
	if !ok {
		if f.ends != nil {
			f.ends()
		}
		return r, errors.New("gone")
	}
	return r, nil
}

func (f *fakeReviewers) Decide(_ context.Context, plugin string, _ arbiter.Question, _ *HostServices) (arbiter.Decision, error) {
	if f.changes != "" {
		f.workspace.tree = f.changes
	}
	if plugin == "gone" {
		return arbiter.Decision{}, errors.New("exit status 3\nlast output: panic")
	}
	return f.decision, nil
}

// world contains everything outside a runner, in memory.
type world struct {
	*fakeJournal
	tracker   fakeTracker
	claims    fakeClaims
	workspace fakeWorkspace
	landing   fakeLanding
	agents    fakeAgents
	commands  fakeCommands
	reviewers fakeReviewers
}

func newWorld() *world {
	w := &world{
		fakeJournal: &fakeJournal{},
		workspace:   fakeWorkspace{tree: "t1", tips: []string{"", "tip"}},
		landing:     fakeLanding{candidate: event.Landing{Target: "refs/heads/main", Old: "old", Tip: "tip", Tree: "t1", From: "t1", Patch: "p1"}},
		commands:    fakeCommands{exits: map[string]int{}},
	}
	w.landing.workspace = &w.workspace
	w.reviewers.workspace, w.reviewers.reviews, w.reviewers.given = &w.workspace, map[string]reviewer.Review{}, map[string]reviewer.Change{}
	return w
}

func (w *world) executor() *Executor {
	return &Executor{
		Session: "s", Title: "A title", Journal: NewJournal(w), Workspace: &w.workspace, Tripwire: &w.workspace, Landing: &w.landing,
		Agents: &w.agents, Reviewers: &w.reviewers, Commands: &w.commands,
	}
}
