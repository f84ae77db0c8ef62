package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/coven-run/coven/internal/config/check"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/runner/engine"
)

// A lane is a target on which tasks land, one at a time, in order of arrival. The name of a tree consists
// of the names of its changes.
type lane struct {
	mu     sync.Mutex
	line   []chan struct{}
	landed []string // moves of the target: the changes that each move added
	tree   string
	runs   []string // trees on which the checks ran
}

type laneLanding struct {
	fakeLanding
	lane *lane
	task string
	came chan struct{} // closed when the task waits for its turn
	hook error         // refuses the landing
}

func (l *laneLanding) Turn(ctx context.Context) (Turn, error) {
	mine := make(chan struct{})
	l.lane.mu.Lock()
	l.lane.line = append(l.lane.line, mine)
	l.lane.mu.Unlock()
	close(l.came)
	release := func() {
		l.lane.mu.Lock()
		defer l.lane.mu.Unlock()
		i := slices.Index(l.lane.line, mine)
		l.lane.line = slices.Delete(l.lane.line, i, i+1)
		if i == 0 && len(l.lane.line) > 0 {
			close(l.lane.line[0])
		}
	}
	select {
	case <-mine:
		return Turn{Doing: func(string) {}, Release: release}, nil
	case <-ctx.Done():
		release()
		return Turn{}, context.Cause(ctx)
	}
}

func (l *laneLanding) Integrate(context.Context) (event.Landing, error) {
	l.workspace.tree = l.lane.tree + l.task
	return event.Landing{Target: "refs/heads/main", Old: l.lane.tree, Tip: l.task, Tree: l.lane.tree + l.task, From: l.task, Patch: l.task}, nil
}

func (l *laneLanding) Stack(_ context.Context, below event.Landing) (event.Landing, error) {
	tree := below.Tree + l.task
	return event.Landing{Target: below.Target, Old: below.Old, New: snapshotOf + tree, Tip: l.task, Tree: tree, From: l.task, Patch: l.task}, l.err
}

func (l *laneLanding) Land(_ context.Context, changes []Change) (all []event.Landing, err error) {
	for _, c := range changes {
		if err := c.Of.(*laneLanding).hook; err != nil {
			return nil, err
		}
	}
	for _, c := range changes {
		c.Candidate.New = "c" + c.Candidate.Tree
		if err := c.Intent(c.Candidate); err != nil {
			return nil, err
		}
		all = append(all, c.Candidate)
	}
	last := changes[len(changes)-1].Candidate.Tree
	l.lane.landed = append(l.lane.landed, strings.TrimPrefix(last, l.lane.tree))
	l.lane.tree = last
	return all, nil
}

// racer is a task that lands.
type racer struct {
	*world
	landing *laneLanding
	x       *Executor
	c       engine.Call
	cancel  context.CancelCauseFunc
	result  event.Result
	err     error
}

// race makes tasks wait for one target, in order, and then land. exit is the exit code of the check of each tree; prepare
// modifies the tasks.
func race(t *testing.T, tasks string, limit int, exit func(racers map[string]*racer, tree string) int, prepare func(map[string]*racer)) (*lane, map[string]*racer) {
	t.Helper()
	l, batch, racers := &lane{}, &Batch{Max: limit}, map[string]*racer{}
	first := make(chan struct{})
	l.line = append(l.line, first)
	for _, task := range strings.Split(tasks, "") {
		r := &racer{world: newWorld(), c: mergeCall(engine.MergeInput{Strategy: "squash", Checks: check.Of("make test")})}
		r.landing = &laneLanding{fakeLanding: r.world.landing, lane: l, task: task, came: make(chan struct{})}
		r.workspace.tree = task
		r.landing.workspace = &r.workspace
		r.commands.does = func(Command) (Ran, error) {
			l.runs = append(l.runs, r.workspace.tree)
			return Ran{ExitCode: exit(racers, r.workspace.tree), Output: "checked " + r.workspace.tree}, nil
		}
		r.x = r.executor()
		r.x.Task, r.x.Landing, r.x.Batch = task, r.landing, batch
		racers[task] = r
	}
	if prepare != nil {
		prepare(racers)
	}
	var all sync.WaitGroup
	for _, task := range strings.Split(tasks, "") {
		r := racers[task]
		var ctx context.Context
		ctx, r.cancel = context.WithCancelCause(t.Context())
		all.Go(func() { r.result, r.err = r.x.Do(ctx, r.c) })
		<-r.landing.came
	}
	l.mu.Lock()
	l.line = l.line[1:]
	close(l.line[0])
	l.mu.Unlock()
	all.Wait()
	return l, racers
}

// The checks run once on all waiting changes. If they fail, the changes that pass together land, and the
// change that causes the failure has its own result.
func TestBatch(t *testing.T) {
	for name, tt := range map[string]struct {
		tasks, bad string // a tree that contains one of the bad changes fails
		limit      int
		runs, land string
	}{
		"all pass":           {"abc", "", 8, "abc", "abc"},
		"more than fit":      {"abcde", "", 3, "abc abcde", "abc de"},
		"switched off":       {"abc", "", 1, "a ab abc", "a b c"},
		"one task":           {"a", "", 8, "a", "a"},
		"the first is bad":   {"abcd", "a", 8, "abcd ab a bcd", "bcd"},
		"the second is bad":  {"abcd", "b", 8, "abcd ab a ab acd", "a cd"},
		"the third is bad":   {"abcd", "c", 8, "abcd ab abc abc abd", "ab d"},
		"the last is bad":    {"abcd", "d", 8, "abcd ab abc abcd", "abc"},
		"two are bad":        {"abcd", "ac", 8, "abcd ab a bcd b bc bc bd", "b d"},
		"of eight, the last": {"abcdefgh", "h", 8, "abcdefgh abcd abcdef abcdefg abcdefgh", "abcdefg"},
	} {
		t.Run(name, func(t *testing.T) {
			l, racers := race(t, tt.tasks, tt.limit, func(_ map[string]*racer, tree string) int {
				if tt.bad != "" && strings.ContainsAny(tree, tt.bad) {
					return 1
				}
				return 0
			}, nil)
			if runs, land := strings.Join(l.runs, " "), strings.Join(l.landed, " "); runs != tt.runs || land != tt.land {
				t.Errorf("checked %s and landed %s, want %s and %s", runs, land, tt.runs, tt.land)
			}
			for task, r := range racers {
				bad := strings.Contains(tt.bad, task)
				if r.err != nil || r.result.OK == bad || bad && r.result.ErrorType != event.ErrorProcessExit {
					t.Errorf("%s: %+v, %v", task, r.result, r.err)
				}
				landings := 1
				if bad {
					landings = 0
				}
				if r.count(event.LandIntended) != landings || r.count(event.LandDone) != landings || r.count(event.BatchStarted) != r.count(event.BatchEnded) {
					t.Errorf("%s recorded %d intents, %d landings", task, r.count(event.LandIntended), r.count(event.LandDone))
				}
				// A change that landed with others has the receipt of the tree to which the target moved.
				if intent, ok := r.x.Journal.Last(event.LandIntended); ok && len(event.As[event.Landing](intent).With) > 0 {
					with := append(event.As[event.Landing](intent).With, task)
					var proof []string
					for _, e := range r.x.Journal.All(event.CheckEnded) {
						if receipt := event.As[event.Receipt](e); receipt.ExitCode == 0 && e.Seq < intent.Seq {
							proof = append(proof, receipt.Tree)
						}
					}
					if n := len(proof); n == 0 || !slices.ContainsFunc(l.landed, func(move string) bool {
						return len(move) == len(with) && strings.Contains(move, task) && strings.HasSuffix(proof[n-1], move)
					}) {
						t.Errorf("%s landed with %q after receipts for %q", task, with, proof)
					}
				}
				if !strings.HasSuffix(r.workspace.tree, task) {
					t.Errorf("%s has a worktree with %s", task, r.workspace.tree)
				}
			}
		})
	}
}

// Only a tree on which the checks passed lands, even if the checks are flaky.
func TestBatchOfFlakyChecks(t *testing.T) {
	for seed := range 64 {
		n, passed := 0, map[string]bool{}
		l, _ := race(t, "abcde", 8, func(_ map[string]*racer, tree string) int {
			n++
			failed := seed >> (n % 6) & 1
			passed[tree] = passed[tree] || failed == 0
			return failed
		}, nil)
		tree := ""
		for _, move := range l.landed {
			if tree += move; !passed[tree] {
				t.Errorf("seed %d: %q landed unchecked: %q", seed, tree, l.runs)
			}
		}
	}
}

// Each session records the changes that it landed with, in the order that a resume requires.
func TestBatchRecords(t *testing.T) {
	_, racers := race(t, "abc", 8, func(map[string]*racer, string) int { return 0 }, func(racers map[string]*racer) {
		racers["b"].c.Merge.RequireReview, racers["b"].x.Approve = true, "--auto-approve"
	})
	b := racers["b"]
	var kinds []string
	for _, e := range b.Events() {
		kinds = append(kinds, string(e.Type))
	}
	if got := strings.Join(kinds, " "); got != "step.started batch.started batch.ended check.ended merge.done review.answered land.intended land.done" {
		t.Errorf("recorded %s", got)
	}
	receipt, _ := b.x.Journal.Last(event.CheckEnded)
	intent, _ := b.x.Journal.Last(event.LandIntended)
	if r, i := event.As[event.Receipt](receipt), event.As[event.Landing](intent); r.Tree != "abc" || i.Tree != "ab" || !slices.Equal(i.With, []string{"a", "c"}) {
		t.Errorf("receipt %+v, intent %+v", r, i)
	}
	if b.result.Commit != "cab" || b.result.Tree != "ab" {
		t.Errorf("result %+v", b.result)
	}
}

// A change that cannot be checked with others waits for its own turn, and a session that stops ends the
// batch.
func TestBatchWithout(t *testing.T) {
	gone, refused := errors.New("gone"), &RefusedError{Reason: "a hook refused"}
	for name, tt := range map[string]struct {
		prepare    func(b *racer)
		cancelled  bool // during the checks
		runs, land string
		result     string // result of b
	}{
		"other checks":      {func(b *racer) { b.c.Merge.Checks = check.Of("make lint") }, false, "ac acb", "ac b", ""},
		"a rebase":          {func(b *racer) { b.c.Merge.Strategy = "rebase" }, false, "ac acb", "ac b", ""},
		"a conflict":        {func(b *racer) { b.landing.err = &ConflictError{Target: "main"} }, false, "ac acb", "ac b", ""},
		"a missing review":  {func(b *racer) { b.c.Merge.RequireReview = true }, false, "ac acb", "ac", "waiting (review)"},
		"a hook refuses it": {func(b *racer) { b.landing.hook = refused }, false, "abc a ab ac", "a c", "a hook refused"},
		"it is cancelled":   {func(*racer) {}, true, "abc a ac", "a c", "gone"},
	} {
		t.Run(name, func(t *testing.T) {
			l, racers := race(t, "abc", 8, func(racers map[string]*racer, tree string) int {
				if tt.cancelled && tree == "abc" {
					racers["b"].cancel(gone)
				}
				return 0
			}, func(racers map[string]*racer) { tt.prepare(racers["b"]) })
			if runs, land := strings.Join(l.runs, " "), strings.Join(l.landed, " "); runs != tt.runs || land != tt.land {
				t.Errorf("checked %s and landed %s, want %s and %s", runs, land, tt.runs, tt.land)
			}
			b := racers["b"]
			if text := fmt.Sprint(b.err, b.result.Error); tt.result != "" && !strings.Contains(text, tt.result) || tt.result == "" && !b.result.OK {
				t.Errorf("b: %+v, %v", b.result, b.err)
			}
			if a, c := racers["a"], racers["c"]; !a.result.OK || !c.result.OK {
				t.Errorf("a: %+v, %v; c: %+v, %v", a.result, a.err, c.result, c.err)
			}
		})
	}
}

// A change of the repository during common checks stops the session in whose worktree they ran, and that
// worktree is not changed until the session is resumed. The other sessions continue.
func TestBatchRepositoryChanged(t *testing.T) {
	l, racers := race(t, "abc", 8, func(racers map[string]*racer, tree string) int {
		if tree == "abc" {
			racers["a"].workspace.changes = []*event.RepositoryChange{{Severity: event.SeverityStops, Changes: []event.Changed{{Text: "a hook was added"}}}}
		}
		return 0
	}, nil)
	a := racers["a"]
	if a.err != nil || a.result.ErrorType != event.ErrorRepository || a.workspace.tree != "abc" {
		t.Errorf("a: %+v, %v; worktree %s", a.result, a.err, a.workspace.tree)
	}
	if runs, land := strings.Join(l.runs, " "), strings.Join(l.landed, " "); runs != "abc bc" || land != "bc" {
		t.Errorf("checked %s and landed %s", runs, land)
	}
	_ = a.Append(event.Event{Type: event.StepCompleted, Path: "land#1"}, a.result)
	if err := a.x.leaveBatch(t.Context()); err != nil || a.workspace.tree != "a" {
		t.Errorf("the worktree has %s, %v", a.workspace.tree, err)
	}
}

// If a worktree cannot contain the files of all changes, its change is checked alone. If it cannot be
// restored afterwards, its session stops, because otherwise the changes of others would land as those of
// its task.
func TestBatchRestores(t *testing.T) {
	for lost, want := range map[string]struct{ runs, land, err string }{
		"abc": {"a ab abc", "a b c", ""},
		"a":   {"abc bc", "bc", "cannot restore " + snapshotOf + "a"},
	} {
		l, racers := race(t, "abc", 8, func(map[string]*racer, string) int { return 0 }, func(racers map[string]*racer) {
			for _, r := range racers {
				r.workspace.lost = snapshotOf + lost
			}
		})
		a := racers["a"]
		if a.result.OK == (want.err != "") || want.err != "" && (a.err == nil || a.err.Error() != want.err || a.workspace.tree != "abc" || a.count(event.BatchEnded) > 0) {
			t.Errorf("a: %+v, %v, worktree %s", a.result, a.err, a.workspace.tree)
		}
		if runs, land := strings.Join(l.runs, " "), strings.Join(l.landed, " "); runs != want.runs || land != want.land {
			t.Errorf("checked %s and landed %s, want %+v", runs, land, want)
		}
	}
}

// The worktree of a session that was killed during common checks is restored first.
func TestLeaveBatch(t *testing.T) {
	for name, tt := range map[string]struct {
		batch    event.Batch
		ended    bool
		restored string
	}{
		"its worktree was used": {event.Batch{Snapshot: snapshotOf + "a"}, false, "a"},
		"that of another":       {event.Batch{}, false, "abc"},
		"the batch had ended":   {event.Batch{Snapshot: snapshotOf + "a"}, true, "abc"},
	} {
		w := newWorld()
		w.workspace.tree = "abc"
		_ = w.Append(event.Event{Type: event.BatchStarted, Path: "land#1"}, tt.batch)
		_ = w.Append(event.Event{Type: event.CheckStarted, Path: "land#1"}, event.Check{Text: "make test", Snapshot: snapshotOf + "abc"})
		if tt.ended {
			_ = w.Append(event.Event{Type: event.CheckEnded, Path: "land#1"}, event.Receipt{})
			_ = w.Append(event.Event{Type: event.BatchEnded, Path: "land#1"}, event.BatchEnd{})
		}
		x := w.executor()
		if err := x.leaveBatch(t.Context()); err != nil || w.workspace.tree != tt.restored {
			t.Errorf("%s: the worktree has %s, %v", name, w.workspace.tree, err)
		}
		if snapshot := x.beforeCheck("land#1"); snapshot != "" {
			t.Errorf("%s: the merge would restore %s", name, snapshot)
		}
	}
}
