package control_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"

	"github.com/coven-run/coven/internal/control"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/fake/fakeapi"
	"github.com/coven-run/coven/internal/project"
)

// A program runs a task, approves its change and lists sessions without a command line.
func Example() {
	_, remove := scratch()
	defer remove()
	if err := poem(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// p-write-a-poem: waiting (review), next: coven approve p-write-a-poem
	// A poem.txt +1 -0
	// roses are red
	// p-write-a-poem: completed
}

// open opens the repository in the current directory.
func open(ctx context.Context) (*control.Controller, error) {
	env := project.NewEnv("example")
	env.Self = func() (string, error) { return exec.LookPath("coven") } // runs agents and plugins
	p, err := project.Open(ctx, env)
	if err != nil {
		return nil, err
	}
	return control.New(p)
}

func poem(ctx context.Context) error {
	c, err := open(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	item, err := c.Project.AdHoc(ctx, "Write a poem")
	if err != nil {
		return err
	}

	if _, err := c.Run(ctx, item, control.Options{Grimoire: "none"}); err != nil {
		return err
	}
	page, err := c.Page(ctx, item.Task.ID)
	if err != nil {
		return err
	}
	v := page.View
	fmt.Printf("%s: %s, next: %s\n", v.Task, control.StateOf(v), control.NextOf(v))
	for _, f := range page.Diff.Files {
		fmt.Printf("%s %s +%d -%d\n", f.Status, f.Path, f.Added, f.Deleted)
	}

	if _, err := c.Approve(ctx, control.ApproveRequest{Task: v.Task}); err != nil {
		return err
	}
	text, err := os.ReadFile("poem.txt")
	if err != nil {
		return err
	}
	fmt.Print(string(text))
	sessions, err := control.Sessions(c.Project)
	for _, v := range sessions {
		fmt.Printf("%s: %s\n", v.Task, control.StateOf(v))
	}
	return err
}

// A session receives a message, is interrupted, resumed and rejected; the next one is cancelled. Impossible
// operations are refused with the reason and the next command.
func Example_session() {
	api, remove := scratch()
	defer remove()
	if err := wall(context.Background(), api); err != nil {
		fmt.Println(err)
	}
	// Output:
	// the agent got: use blue
	// interrupted, next: coven resume p-paint-a-wall
	// waiting, next: coven approve p-paint-a-wall
	// cannot resume task p-paint-a-wall: it is waiting (review): the change is ready for approval
	// rejected, stored as refs/coven/rescue/p-paint-a-wall/1
	// waiting, next: coven approve p-paint-a-wall
	// cancelled, stored as refs/coven/rescue/p-paint-a-wall/2
	// cannot cancel task p-paint-a-wall: it is cancelled (exit code 1, next: coven why p-paint-a-wall)
}

func wall(ctx context.Context, api *fakeapi.Server) error {
	c, err := open(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	c.Observer.Event = func(e event.Event) {
		if e.Type == event.AgentMessage {
			fmt.Println("the agent got:", event.As[event.Message](e).Text)
		}
	}
	item, err := c.Project.AdHoc(ctx, "Paint a wall")
	if err != nil {
		return err
	}
	if err := disturb(ctx, c, item, api); err != nil {
		return err
	}
	id := item.Task.ID
	outcome, err := c.Resume(ctx, control.ResumeRequest{Task: id})
	if err != nil {
		return err
	}
	show(outcome)
	_, err = c.Resume(ctx, control.ResumeRequest{Task: id})
	fmt.Println(err)
	done, err := c.Reject(ctx, control.RejectRequest{Task: id, Reason: "it is red"})
	if err != nil {
		return err
	}
	fmt.Println("rejected, stored as", done.Rescue)

	// The task is open again. The agent of the next session gets the reason.
	if outcome, err = c.Run(ctx, item, control.Options{Grimoire: "none"}); err != nil {
		return err
	}
	show(outcome)
	if done, err = c.Cancel(ctx, control.CancelRequest{Task: id}); err != nil {
		return err
	}
	fmt.Println("cancelled, stored as", done.Rescue)
	_, err = c.Cancel(ctx, control.CancelRequest{Task: id})
	fmt.Printf("%v (exit code %d, next: %s)\n", err, exit.Code(err), exit.Next(err))
	return nil
}

// disturb runs a task, sends a message to its agent and then interrupts it.
func disturb(ctx context.Context, c *control.Controller, item project.Item, api *fakeapi.Server) error {
	running, interrupt := context.WithCancelCause(ctx)
	delivered := make(chan error)
	go func() {
		err := api.WaitHeld(ctx, "brush")
		if err == nil {
			err = c.Deliver(ctx, item.Task.ID, "use blue")
		}
		interrupt(control.ErrInterrupted)
		delivered <- err
	}()
	outcome, err := c.Run(running, item, control.Options{Grimoire: "none"})
	if err := errors.Join(err, <-delivered); err != nil {
		return err
	}
	show(outcome)
	api.Release("brush")
	return nil
}

func show(o control.Outcome) { fmt.Printf("%s, next: %s\n", o.Status, o.Next) }
