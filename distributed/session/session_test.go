package session_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"github.com/coven-run/coven/distributed/session"
)

var task = session.Task{Repository: "acme/shop", Task: "bd-1", Ref: "refs/coven/live/bd-1", Plan: 3, Heartbeat: 30 * time.Second}

// end is how a machine ends a stretch.
type end struct {
	stop session.Stop
	err  error
}

// story plays a workflow whose stretches end as given, the last one with the end of the session.
type story struct {
	*testsuite.TestWorkflowEnvironment
	ends      []end
	stretches []string
}

func newStory(t *testing.T, ends ...end) *story {
	t.Helper()
	suite := &testsuite.WorkflowTestSuite{}
	s := &story{TestWorkflowEnvironment: suite.NewTestWorkflowEnvironment(), ends: ends}
	s.RegisterWorkflow(session.Run)
	s.RegisterActivityWithOptions(func(ctx context.Context, _ session.Task) (session.Stop, error) {
		info := activity.GetInfo(ctx)
		s.stretches = append(s.stretches, strings.TrimPrefix(info.TaskQueue, "coven/acme/shop/")) // the priority is not known here
		if len(s.ends) == 0 {
			return session.Stop{Over: true}, nil
		}
		e := s.ends[0]
		s.ends = s.ends[1:]
		return e.stop, e.err
	}, activity.RegisterOptions{Name: session.Stretch})
	s.SetTestTimeout(time.Minute)
	return s
}

func (s *story) play(t *testing.T) session.Stop {
	t.Helper()
	s.ExecuteWorkflow(session.Run, task)
	if !s.IsWorkflowCompleted() {
		t.Fatal("the workflow goes on")
	}
	var stop session.Stop
	if err := s.GetWorkflowError(); err != nil {
		t.Fatal(err)
	}
	if err := s.GetWorkflowResult(&stop); err != nil {
		t.Fatal(err)
	}
	return stop
}

// wakeAt wakes the session at a time after its start.
func (s *story) wakeAt(d time.Duration) {
	s.RegisterDelayedCallback(func() { s.SignalWorkflow(session.Wake, nil) }, d)
}

func (s *story) check(t *testing.T, want ...string) {
	t.Helper()
	if got := strings.Join(s.stretches, ", "); got != strings.Join(want, ", ") {
		t.Errorf("stretches: %s; want %s", got, strings.Join(want, ", "))
	}
}

func lost(kind enumspb.TimeoutType) error { return temporal.NewTimeoutError(kind, nil) }

func TestOver(t *testing.T) {
	s := newStory(t)
	if !s.play(t).Over {
		t.Error("it is not over")
	}
	s.check(t, "plan-3")
}

// A person answers after three days; the machine that has the worktree goes on.
func TestReview(t *testing.T) {
	s := newStory(t, end{stop: session.Stop{Status: "waiting", Reason: "review", Machine: "m1"}})
	began := s.Now()
	s.wakeAt(72 * time.Hour)
	s.play(t)
	s.check(t, "plan-3", "plan-3@m1")
	if waited := s.Now().Sub(began); waited < 72*time.Hour {
		t.Errorf("it waited %s", waited)
	}
}

// A machine that has no place for a session costs no time. One that is being drained may still ask for sessions.
func TestNoPlace(t *testing.T) {
	for reason, want := range map[string]time.Duration{session.NoPlace: 0, "": time.Second} {
		s := newStory(t, end{stop: session.Stop{Status: session.Interrupted, Reason: reason, Machine: "m1"}})
		began := s.Now()
		s.play(t)
		s.check(t, "plan-3", "plan-3")
		if waited := s.Now().Sub(began).Truncate(time.Second); waited != want {
			t.Errorf("%q: it waited %s", reason, waited)
		}
	}
}

// A signal that comes while a machine runs the session leads to another stretch.
func TestWakeDuringStretch(t *testing.T) {
	s := newStory(t, end{stop: session.Stop{Status: "waiting", Reason: "review", Machine: "m1"}})
	s.SetOnActivityStartedListener(func(*activity.Info, context.Context, converter.EncodedValues) {
		if len(s.stretches) == 0 {
			s.SignalWorkflow(session.Wake, nil)
		}
	})
	s.play(t)
	s.check(t, "plan-3", "plan-3@m1")
}

// Several signals that came before a stretch lead to one.
func TestWakesBefore(t *testing.T) {
	s := newStory(t, end{stop: session.Stop{Status: "waiting", Reason: "review", Machine: "m1"}}, end{stop: session.Stop{Status: "blocked", Machine: "m1"}})
	for range 3 {
		s.wakeAt(time.Hour)
	}
	s.wakeAt(2 * time.Hour)
	s.play(t)
	s.check(t, "plan-3", "plan-3@m1", "plan-3@m1")
}

// A limit ends at its time, without a person.
func TestLimit(t *testing.T) {
	s := newStory(t)
	until := s.Now().Add(5 * time.Hour)
	s.ends = []end{{stop: session.Stop{Status: "waiting", Reason: "limit", Until: until, Machine: "m1"}}}
	s.play(t)
	s.check(t, "plan-3", "plan-3@m1")
	if s.Now().Before(until) {
		t.Errorf("it went on at %s, before %s", s.Now(), until)
	}
}

// While the remote is away, the session tries again, and rests for no person.
func TestRemoteAway(t *testing.T) {
	away := end{stop: session.Stop{Status: "waiting", Reason: "remote", Machine: "m1"}}
	s := newStory(t, away, away, away)
	s.play(t)
	s.check(t, "plan-3", "plan-3@m1", "plan-3@m1", "plan-3@m1")
}

// A machine whose disk is full is not preferred.
func TestDiskFull(t *testing.T) {
	s := newStory(t, end{stop: session.Stop{Status: "waiting", Reason: "checkout", Machine: "m1"}}, end{stop: session.Stop{Status: "waiting", Reason: "remote", Machine: "m2"}})
	s.play(t)
	s.check(t, "plan-3", "plan-3", "plan-3@m2")
}

// A machine that is lost is followed by any other, before new work; the one that was lost is not preferred.
func TestLostMachine(t *testing.T) {
	s := newStory(t,
		end{stop: session.Stop{Status: "waiting", Reason: "remote", Machine: "m1"}},
		end{err: lost(enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START)},
		end{err: lost(enumspb.TIMEOUT_TYPE_HEARTBEAT)},
	)
	s.play(t)
	s.check(t, "plan-3", "plan-3@m1", "plan-3", "plan-3")
}

// A machine that is being drained hands the session on.
func TestDrained(t *testing.T) {
	s := newStory(t, end{stop: session.Stop{Status: "interrupted", Machine: "m1"}})
	s.play(t)
	s.check(t, "plan-3", "plan-3")
}

// A machine that cannot run coven is tried again, with growing pauses and never given up.
func TestBroken(t *testing.T) {
	broken := end{err: errors.New("no space left on device")}
	s := newStory(t, broken, broken, broken, broken)
	began := s.Now()
	s.play(t)
	if waited := s.Now().Sub(began); waited < 15*time.Second {
		t.Errorf("it waited %s", waited)
	}
	s.check(t, "plan-3", "plan-3", "plan-3", "plan-3", "plan-3")
}

func TestLabels(t *testing.T) {
	old := task
	t.Cleanup(func() { task = old })
	task.Needs, task.Prefers = "gpu", "big"
	s := newStory(t, end{err: lost(enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START)})
	s.play(t)
	s.check(t, "plan-3/big", "plan-3/gpu")
}

// settled asks for the end of the session at a time, and calls done with it.
func (s *story) settled(t *testing.T, at time.Duration, done func(session.Stop)) {
	t.Helper()
	s.RegisterDelayedCallback(func() {
		s.UpdateWorkflow(session.Settle, "", &testsuite.TestUpdateCallback{
			OnAccept: func() {}, OnReject: func(err error) { t.Error(err) },
			OnComplete: func(result any, err error) {
				if err != nil {
					t.Error(err)
					return
				}
				done(result.(session.Stop))
			},
		})
	}, at)
}

// Settle returns when only a person can continue the session, not while a limit passes, and at its end.
func TestSettle(t *testing.T) {
	s := newStory(t)
	s.ends = []end{
		{stop: session.Stop{Status: "waiting", Reason: "limit", Until: s.Now().Add(time.Hour), Machine: "m1"}},
		{stop: session.Stop{Status: "waiting", Reason: "review", Machine: "m1"}},
	}
	var got []string
	note := func(stop session.Stop) { got = append(got, stop.Reason) }
	s.settled(t, time.Minute, note)
	s.settled(t, 2*time.Hour, note)
	s.wakeAt(3 * time.Hour)
	s.RegisterDelayedCallback(func() {
		if strings.Join(got, " ") != "review review" {
			t.Errorf("before the answer: %q", got)
		}
	}, 2*time.Hour+time.Minute)
	s.play(t)
}

// A recall ends the workflow, whether the session rests or not.
func TestRecall(t *testing.T) {
	s := newStory(t, end{stop: session.Stop{Status: "waiting", Reason: "review", Machine: "m1"}})
	s.RegisterDelayedCallback(s.CancelWorkflow, time.Hour)
	s.ExecuteWorkflow(session.Run, task)
	if !temporal.IsCanceledError(s.GetWorkflowError()) {
		t.Errorf("it ended with %v", s.GetWorkflowError())
	}
	s.check(t, "plan-3")
}

func TestNames(t *testing.T) {
	seen := map[string]bool{}
	for _, id := range []string{"bd-1", "Bd-1", "x/y", "x_y", "größe", "gr%C3%B6%C3%9Fe", "%", "a b"} {
		one := session.Task{Repository: "büro/shop", Task: id}.ID()
		if strings.ContainsFunc(one, func(c rune) bool { return c < ' ' || c > '~' }) || seen[one] {
			t.Errorf("the workflow of %q is %q", id, one)
		}
		seen[one] = true
		if got := session.Readable(one); got != "büro/shop/"+id {
			t.Errorf("%q is %q", id, got)
		}
	}
	long := strings.Repeat("größe ", 50)
	for _, label := range []string{long + "x", long + "y"} {
		one := session.Queue(long, 3, label)
		if seen[one] || len(one) > 1000 {
			t.Errorf("the queue of %q is %q", label, one)
		}
		seen[one] = true
	}
	if got := session.Readable(session.Plain("a\x1bb")); got != "a%1Bb" {
		t.Errorf("got %q", got)
	}
}

// The clock of a machine is an hour slow or fast. The session waits as long as its limit lasts.
func TestLimitOnAnotherClock(t *testing.T) {
	for _, wrong := range []time.Duration{-time.Hour, time.Hour} {
		s := newStory(t)
		began := s.Now()
		s.ends = []end{{stop: session.Stop{Status: "waiting", Reason: "limit", Until: began.Add(wrong + 5*time.Minute), Left: 5 * time.Minute, Machine: "m1"}}}
		s.play(t)
		if waited := s.Now().Sub(began).Round(time.Minute); waited != 5*time.Minute {
			t.Errorf("with a clock that is wrong by %s, it waited %s", wrong, waited)
		}
	}
}
