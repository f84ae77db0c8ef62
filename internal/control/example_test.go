package control_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"

	"github.com/coven-run/coven/internal/control"
	"github.com/coven-run/coven/internal/project"
)

// A program needs no command line to run a task, approve its change and list sessions.
func Example() {
	defer scratch()()
	if err := poem(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// p-write-a-poem: waiting (review), next: coven approve p-write-a-poem
	// A poem.txt +1 -0
	// roses are red
	// p-write-a-poem: completed
}

func poem(ctx context.Context) error {
	env := project.NewEnv("example")
	env.Self = func() (string, error) { return exec.LookPath("coven") } // runs agents and plugins
	p, err := project.Open(ctx, env)
	if err != nil {
		return err
	}
	item, err := p.AdHoc(ctx, "Write a poem")
	if err != nil {
		return err
	}
	c, err := control.New(p)
	if err != nil {
		return err
	}
	defer c.Close()

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
	sessions, err := control.Sessions(p)
	for _, v := range sessions {
		fmt.Printf("%s: %s\n", v.Task, control.StateOf(v))
	}
	return err
}
