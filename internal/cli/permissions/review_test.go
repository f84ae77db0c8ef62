package permissions

import (
	"strings"
	"testing"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/permission"
	"github.com/coven-run/coven/internal/session"
)

// Equal calls of several sessions are counted together, regardless of their worktree. A record without
// enough details is not a request.
func TestRefusals(t *testing.T) {
	calls := func(task string, all ...event.Decision) session.View {
		v := session.View{History: session.History{Calls: all}}
		v.Task = task
		return v
	}
	write := func(file string) event.Decision {
		return event.Decision{Tool: "Write", Permission: "file.write", Subject: file}
	}
	by := func(_ session.View, req permission.Request) (permission.Refusal, bool) {
		return permission.Refusal{Request: req, Agent: "a"}, req.Path != "/worktree/of/a/reviewer"
	}
	refused, unreadable := refusals([]session.View{
		calls("t1", write("/r/.coven/worktrees/t1/a/b"), write("/etc/x"), event.Decision{Tool: "Mystery", Permission: "unknown"}),
		calls("t2", write("/r-t2/a/b"), write("a/./b"), event.Decision{Permission: "file.write", Subject: "x", Allowed: true}),
		calls(
			"t3",
			event.Decision{Permission: "bash.execute", Subject: strings.Repeat("x", 200) + "…"},
			event.Decision{Permission: "file.write", Subject: "of/a/reviewer", Reason: "it was not granted"},
			event.Decision{Permission: "bash.execute", Reason: "its input has no command"},
			event.Decision{Tool: "Mystery", Permission: "unknown"},
		),
	}, by)
	var got []string
	for _, r := range refused {
		got = append(got, r.Path, strings.Repeat("+", r.Times))
	}
	for _, h := range unreadable {
		got = append(got, h.Reason, strings.Repeat("+", h.Times))
	}
	want := "the record has only its beginning + it was not granted + its input has no command + coven does not know this tool ++"
	if text := strings.Join(got, " "); text != "/worktree/a/b +++ /etc/x + "+want {
		t.Errorf("%s", text)
	}
}
