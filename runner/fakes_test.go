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

	"github.com/coven-run/coven/internal/agent"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/plugins/arbiter"
	"github.com/coven-run/coven/plugins/reviewer"
)

// fakeJournal is a journal in memory.
type fakeJournal struct {
	mu     sync.Mutex
	events []event.Event
	logs   map[string]*strings.Builder
	broken error // of the next Append
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

// count returns how many events of a type are recorded.
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

// fakeTracker records what the task is told.
type fakeTracker struct {
	told []string
	err  error
}

func (f *fakeTracker) tell(text string) error {
	f.told = append(f.told, text)
	return f.err
}

func (f *fakeTracker) Close(_ context.Context, summary, commit string) error {
	return f.tell("close " + commit + ": " + summary)
}

func (f *fakeTracker) Block(_ context.Context, why string) error { return f.tell("block: " + why) }

func (f *fakeTracker) Release(_ context.Context, why string) error { return f.tell("release" + why) }

func (f *fakeTracker) Note(_ context.Context, text string) error { return f.tell("note: " + text) }

// fakeClaims is a claim that is held or not.
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

// fakeWorkspace is a worktree that is a tree of a name.
type fakeWorkspace struct {
	tree    string
	tips    []string // of the branch: each is returned once, the last from then on
	entered int
	left    []string // the tips that had landed
	putTip  string
	err     error // of Enter
}

func (f *fakeWorkspace) Enter(context.Context) error {
	f.entered++
	return f.err
}

func (f *fakeWorkspace) Leave(_ context.Context, landed string) (string, error) {
	f.left = append(f.left, landed)
	return "", nil
}

func (f *fakeWorkspace) Snapshot(context.Context, string) (event.Snapshot, error) {
	return event.Snapshot{N: 1, Commit: "snapshot", Tree: f.tree}, nil
}
func (f *fakeWorkspace) Restore(context.Context, string) error { return nil }
func (f *fakeWorkspace) Changed(context.Context, string, string) ([]string, error) {
	return nil, nil
}
func (f *fakeWorkspace) Tree(context.Context) (string, error) { return f.tree, nil }

func (f *fakeWorkspace) Commit(context.Context, string, string) (Commit, error) {
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

// fakeLanding lands one candidate, as often as it is asked.
type fakeLanding struct {
	candidate event.Landing
	landed    []event.Landing
	messages  []string
	err       error // of Integrate
	recovers  bool  // an interrupted landing is found to be done
}

func (f *fakeLanding) Turn(context.Context) (func(), error)               { return func() {}, nil }
func (f *fakeLanding) Conflict(context.Context) (string, []string, error) { return "", nil, nil }
func (f *fakeLanding) Integrate(context.Context) (event.Landing, error)   { return f.candidate, f.err }

func (f *fakeLanding) Land(_ context.Context, l event.Landing, message string, intent func(event.Landing) error) (event.Landing, error) {
	l.New = "new"
	f.landed, f.messages = append(f.landed, l), append(f.messages, message)
	return l, intent(l)
}

func (f *fakeLanding) Recover(context.Context, event.Landing) (bool, error) { return f.recovers, nil }

// fakeAgents runs one function after another.
type fakeAgents struct {
	next  []func(run AgentRun) (agent.Report, error)
	err   error // when there is no function left
	runs  []AgentRun
	limit error // of Await
}

func (f *fakeAgents) Await(context.Context, string, string) error { return f.limit }

func (f *fakeAgents) Run(_ context.Context, run AgentRun) (agent.Report, error) {
	f.runs = append(f.runs, run)
	if len(f.next) == 0 {
		return agent.Report{}, f.err
	}
	next := f.next[0]
	f.next = f.next[1:]
	return next(run)
}

func (f *fakeAgents) Recall(context.Context, string, io.Reader) (agent.Report, bool, error) {
	return agent.Report{}, false, nil
}

// fakeCommands runs commands that end with an exit code.
type fakeCommands struct {
	exits map[string]int
	ran   []string
}

func (f *fakeCommands) Run(_ context.Context, c Command) (Ran, error) {
	f.ran = append(f.ran, c.Shell)
	return Ran{ExitCode: f.exits[c.Shell], Output: fmt.Sprintf("output of %s", c.Shell)}, nil
}

// fakeReviewers answers by plugin.
type fakeReviewers struct {
	workspace *fakeWorkspace
	reviews   map[string]reviewer.Review
	decision  arbiter.Decision
}

func (f *fakeReviewers) Change(context.Context) (reviewer.Change, string, error) {
	return reviewer.Change{Tree: f.workspace.tree, Files: []reviewer.File{{Path: "a.go"}}}, "p1", nil
}

func (f *fakeReviewers) Review(_ context.Context, plugin string, _ reviewer.Change, _ *HostServices) (reviewer.Review, error) {
	r, ok := f.reviews[plugin]
	if !ok {
		return r, errors.New("gone")
	}
	return r, nil
}

func (f *fakeReviewers) Decide(context.Context, string, arbiter.Question, *HostServices) (arbiter.Decision, error) {
	return f.decision, nil
}

// world is everything around a runner, in memory.
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
		landing:     fakeLanding{candidate: event.Landing{Target: "refs/heads/main", Old: "old", Tip: "tip", Tree: "t1", Patch: "p1"}},
		commands:    fakeCommands{exits: map[string]int{}},
	}
	w.reviewers = fakeReviewers{workspace: &w.workspace, reviews: map[string]reviewer.Review{}}
	return w
}

// executor returns an executor in this world.
func (w *world) executor() *Executor {
	return &Executor{
		Session: "s", Title: "A title", Journal: NewJournal(w), Workspace: &w.workspace, Landing: &w.landing,
		Agents: &w.agents, Reviewers: &w.reviewers, Commands: &w.commands,
	}
}
