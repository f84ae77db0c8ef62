package account

import (
	"context"
	"time"

	"go.temporal.io/sdk/client"

	"github.com/coven-run/coven/distributed/session"
)

// Limits are the limits of accounts, as the server knows them.
type Limits struct{ Client client.Client }

// patience is how long an answer of the server may take. coven waits for it a little longer, and then goes on.
const patience = 1500 * time.Millisecond

// id returns the ID of the workflow of an account.
func id(account string) string { return session.Plain("account/" + account) }

// Tell records that an account is limited. Without an answer of the server, the other machines meet the limit themselves.
func (l *Limits) Tell(ctx context.Context, account string, until time.Time) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	options := client.StartWorkflowOptions{ID: id(account), TaskQueue: Queue, WorkflowTaskTimeout: session.DecisionTime}
	met := Limit{Until: until, Left: time.Until(until)}
	_, _ = l.Client.SignalWithStartWorkflow(ctx, id(account), limited, met, options, Name, met)
}

// Until returns until when an account is limited. The time is zero if it is not, or if no answer comes.
func (l *Limits) Until(ctx context.Context, account string) time.Time {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	update, err := l.Client.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{WorkflowID: id(account), UpdateName: ask, WaitForStage: client.WorkflowUpdateStageCompleted})
	left := time.Duration(0)
	if err == nil {
		err = update.Get(ctx, &left)
	}
	if err != nil || left <= 0 { // without a limit, there is no workflow
		return time.Time{}
	}
	return time.Now().Add(left)
}
