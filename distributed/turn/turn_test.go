package turn_test

import (
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/coven-run/coven/distributed/turn"
)

const lease = 30 * time.Second

// line plays a workflow, and records the sessions in the order of their turns.
type line struct {
	*testsuite.TestWorkflowEnvironment
	t     *testing.T
	turns []string
	gone  string // a session that left while it waited
}

func newLine(t *testing.T) *line {
	t.Helper()
	suite := &testsuite.WorkflowTestSuite{}
	l := &line{TestWorkflowEnvironment: suite.NewTestWorkflowEnvironment(), t: t}
	l.SetTestTimeout(time.Minute)
	return l
}

// come lets a session ask at a time until its turn comes, and then land for a while. With a silent one, it never asks again.
func (l *line) come(at time.Duration, task string, lands time.Duration) {
	l.RegisterDelayedCallback(func() { l.ask(task, lands) }, at)
}

func (l *line) ask(task string, lands time.Duration) {
	l.UpdateWorkflow("ask", "", &testsuite.TestUpdateCallback{
		OnAccept: func() {}, OnReject: func(err error) { l.t.Error(err) },
		OnComplete: func(result any, err error) {
			switch {
			case err != nil:
				l.t.Error(err)
			case l.gone == task:
			case result.(int) != 0:
				l.ask(task, lands)
			default:
				l.turns = append(l.turns, task)
				if lands > 0 {
					l.RegisterDelayedCallback(func() { l.SignalWorkflow("leave", task) }, lands)
				}
				for at := turn.Grip / 3; at < lands; at += turn.Grip / 3 { // it holds its turn
					l.RegisterDelayedCallback(func() {
						l.UpdateWorkflow("ask", "", &testsuite.TestUpdateCallback{OnAccept: func() {}, OnReject: func(error) {}, OnComplete: func(any, error) {}}, task)
					}, at)
				}
			}
		},
	}, task)
}

// play plays the workflow to its end, and checks the turns and the time.
func (l *line) play(least, most time.Duration, want ...string) {
	l.t.Helper()
	began := l.Now()
	l.ExecuteWorkflow(turn.Run, lease, []turn.Place(nil))
	if err := l.GetWorkflowError(); !l.IsWorkflowCompleted() || err != nil {
		l.t.Fatalf("completed: %v, %v", l.IsWorkflowCompleted(), err)
	}
	if got := strings.Join(l.turns, " "); got != strings.Join(want, " ") {
		l.t.Errorf("turns: %s; want %s", got, strings.Join(want, " "))
	}
	if took := l.Now().Sub(began); took < least || took > most {
		l.t.Errorf("it took %s, not %s to %s", took, least, most)
	}
}

// Sessions land one after another, in the order in which they came, however long they wait.
func TestOrder(t *testing.T) {
	l := newLine(t)
	l.come(0, "a", 20*time.Second)
	l.come(time.Second, "b", 20*time.Second)
	l.come(2*time.Second, "c", 20*time.Second)
	l.play(time.Minute, time.Minute, "a", "b", "c")
}

// The turn of a session whose machine is gone ends soon.
func TestSilent(t *testing.T) {
	l := newLine(t)
	l.come(0, "a", 0)
	l.come(time.Second, "b", 10*time.Second)
	l.play(turn.Grip+10*time.Second, turn.Grip+10*time.Second, "a", "b")
}

// A session whose machine is gone is found before its turn comes, so that none waits for it.
func TestSilentNext(t *testing.T) {
	l := newLine(t)
	l.come(0, "a", 20*time.Second)
	l.come(time.Second, "b", 10*time.Second)
	l.come(2*time.Second, "c", 10*time.Second)
	l.RegisterDelayedCallback(func() { l.gone = "b" }, 3*time.Second)
	l.play(30*time.Second, 30*time.Second, "a", "c")
}

// A session that leaves while it waits does not get a turn.
func TestLeave(t *testing.T) {
	l := newLine(t)
	l.come(0, "a", 8*time.Second)
	l.come(time.Second, "b", 0)
	l.RegisterDelayedCallback(func() {
		l.gone = "b"
		l.SignalWorkflow("leave", "b")
	}, 2*time.Second)
	l.come(3*time.Second, "c", time.Second)
	l.play(9*time.Second, 9*time.Second, "a", "c")
}

// A workflow with a long history goes on as a new one: all sessions get an answer, and keep their places.
func TestContinued(t *testing.T) {
	l := newLine(t)
	l.RegisterWorkflowWithOptions(turn.Run, workflow.RegisterOptions{Name: turn.Name})
	answers := map[string]int{}
	for at, task := range []string{"a", "b", "c"} {
		l.RegisterDelayedCallback(func() {
			l.UpdateWorkflow("ask", "", &testsuite.TestUpdateCallback{
				OnAccept: func() {}, OnReject: func(err error) { t.Error(err) },
				OnComplete: func(result any, err error) {
					if err != nil {
						t.Error(err)
						return
					}
					answers[task] = result.(int)
				},
			}, task)
		}, time.Duration(at)*time.Millisecond)
	}
	l.RegisterDelayedCallback(func() { l.SetContinueAsNewSuggested(true) }, 100*time.Millisecond)
	l.ExecuteWorkflow(turn.Run, lease, []turn.Place(nil))
	next := (*workflow.ContinueAsNewError)(nil)
	if err := l.GetWorkflowError(); !errors.As(err, &next) {
		t.Fatalf("it ends with %v", err)
	}
	var queue []turn.Place
	if err := converter.GetDefaultDataConverter().FromPayloads(next.Input, new(time.Duration), &queue); err != nil {
		t.Fatal(err)
	}
	var tasks []string
	for _, p := range queue {
		tasks = append(tasks, p.Task)
	}
	if got := strings.Join(tasks, " "); got != "a b c" {
		t.Errorf("the queue is %s", got)
	}
	if want := map[string]int{"a": 0, "b": 1, "c": 2}; !maps.Equal(answers, want) {
		t.Errorf("answers %v", answers)
	}
}
