package account_test

import (
	"errors"
	"testing"
	"time"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/coven-run/coven/distributed/account"
)

// entity plays a workflow.
type entity struct {
	*testsuite.TestWorkflowEnvironment
	t     *testing.T
	begun time.Time
}

func newEntity(t *testing.T) *entity {
	t.Helper()
	suite := &testsuite.WorkflowTestSuite{}
	e := &entity{TestWorkflowEnvironment: suite.NewTestWorkflowEnvironment(), t: t}
	e.SetTestTimeout(time.Minute)
	e.begun = e.Now()
	return e
}

// limit returns the limit that a machine tells after a while, until a time after the start by its clock.
func (e *entity) limit(left, until time.Duration) account.Limit {
	return account.Limit{Left: left, Until: e.begun.Add(until)}
}

// told lets a machine tell a limit.
func (e *entity) told(at time.Duration, met account.Limit) {
	e.RegisterDelayedCallback(func() { e.SignalWorkflow("limited", met) }, at)
}

// asked lets a machine ask, and checks how long the limit lasts.
func (e *entity) asked(at, want time.Duration) {
	e.RegisterDelayedCallback(func() {
		e.UpdateWorkflow("ask", "", &testsuite.TestUpdateCallback{
			OnAccept: func() {}, OnReject: func(err error) { e.t.Error(err) },
			OnComplete: func(result any, err error) {
				if left, ok := result.(time.Duration); err != nil || !ok || left != want {
					e.t.Errorf("after %s, the answer is %v, %v; want %s", at, result, err, want)
				}
			},
		})
	}, at)
}

// play plays the workflow, and checks when it ends.
func (e *entity) play(met account.Limit, want time.Duration) {
	e.t.Helper()
	e.ExecuteWorkflow(account.Run, met)
	if err := e.GetWorkflowError(); !e.IsWorkflowCompleted() || err != nil {
		e.t.Fatalf("completed: %v, %v", e.IsWorkflowCompleted(), err)
	}
	if took := e.Now().Sub(e.begun); took != want {
		e.t.Errorf("it took %s, not %s", took, want)
	}
}

// A limit lasts as long as the longest that a machine has met.
func TestLimit(t *testing.T) {
	e := newEntity(t)
	e.asked(20*time.Minute, 40*time.Minute)
	e.told(30*time.Minute, e.limit(5*time.Minute, 35*time.Minute))
	e.asked(31*time.Minute, 29*time.Minute)
	e.told(40*time.Minute, e.limit(time.Hour, 100*time.Minute))
	e.asked(70*time.Minute, 30*time.Minute)
	e.play(e.limit(time.Hour, time.Hour), 100*time.Minute)
}

// The clock of a machine that is late or early makes no limit longer, nor does a signal that is received late.
func TestClocks(t *testing.T) {
	for name, c := range map[string]struct{ left, until, want time.Duration }{
		"early clock":   {time.Hour, 3 * time.Hour, time.Hour},
		"late clock":    {time.Hour, 20 * time.Minute, 20 * time.Minute},
		"late signal":   {time.Hour, 5 * time.Minute, 5 * time.Minute},
		"too late":      {time.Hour, -5 * time.Minute, 0},
		"already over":  {-time.Minute, -time.Minute, 0},
		"no time":       {0, 0, 0},
		"a mad machine": {1 << 60, 1 << 60, 30 * 24 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEntity(t)
			e.play(e.limit(c.left, c.until), c.want)
		})
	}
}

// A workflow with a long history goes on as a new one, for as long.
func TestContinued(t *testing.T) {
	e := newEntity(t)
	e.RegisterWorkflowWithOptions(account.Run, workflow.RegisterOptions{Name: account.Name})
	e.RegisterDelayedCallback(func() { e.SetContinueAsNewSuggested(true) }, 10*time.Minute)
	e.ExecuteWorkflow(account.Run, e.limit(time.Hour, time.Hour))
	next := (*workflow.ContinueAsNewError)(nil)
	if err := e.GetWorkflowError(); !errors.As(err, &next) {
		t.Fatalf("it ends with %v", err)
	}
	var met account.Limit
	if err := converter.GetDefaultDataConverter().FromPayloads(next.Input, &met); err != nil {
		t.Fatal(err)
	}
	if met.Left != 50*time.Minute || !met.Until.Equal(e.begun.Add(time.Hour)) {
		t.Errorf("it goes on with %+v", met)
	}
}
