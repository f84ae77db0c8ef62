package fleet

import (
	"context"
	"encoding/json"
	"time"

	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/text/oneline"
	"github.com/coven-run/coven/internal/text/shellword"
)

// listTime limits how long a command that shows sessions waits for the server.
const listTime = 3 * time.Second

// listed is a session that coven-worker list --json prints.
type listed struct {
	Task   string `json:"task"`
	Label  string `json:"label"`  // of the machines that may run it; empty for all
	Served bool   `json:"served"` // by a machine
}

// Resume returns the command that shows the session of a task again while workers run it.
func (f *Fleet) Resume(task string) string {
	return "coven resume " + shellword.Word(task) + " --on " + shellword.Word(f.On)
}

// Explain sets the reason and the next command of those sessions that wait for workers although no machine can run them, as far as the server tells. A nil Fleet does
// nothing, and Explain does not ask the server if no session waits for workers.
func (f *Fleet) Explain(ctx context.Context, all []session.View) {
	if f == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, listTime)
	defer cancel()
	known := map[string]map[string]listed{} // by remote and task
	for i, v := range all {
		if !v.WaitsForWorker() {
			continue
		}
		if _, asked := known[v.Info.Remote]; !asked {
			known[v.Info.Remote] = f.list(ctx, v.Info.Remote)
		}
		if s, ok := known[v.Info.Remote][v.Task]; ok && !s.Served {
			all[i].Detail, all[i].Next = f.unserved(s.Label)
		}
	}
}

// unserved returns why no machine can run a session that needs a label, and the command for a machine that can.
func (f *Fleet) unserved(label string) (why, next string) {
	next = "coven worker --on " + shellword.Word(f.On)
	if label == "" {
		return "no machine on " + f.On + " serves this repository with this version of coven", next
	}
	return "no machine on " + f.On + " has the label " + oneline.Of(label) + ", which the task needs", next + " --label " + shellword.Word(label)
}

// list returns the sessions of a remote that the server knows, by task. There are none if the server does not answer, or if coven-worker is older.
func (f *Fleet) list(ctx context.Context, remote string) map[string]listed {
	cmd, err := Command(ctx, f.Self, "list", "--json", "--on", f.On, "--remote", remote)
	if err != nil {
		return nil
	}
	cmd.Dir, cmd.WaitDelay = f.Dir, time.Second
	out, err := cmd.Output()
	var found struct {
		Sessions []listed `json:"sessions"`
	}
	if err != nil || json.Unmarshal(out, &found) != nil {
		return nil
	}
	all := map[string]listed{}
	for _, s := range found.Sessions {
		all[s.Task] = s
	}
	return all
}
