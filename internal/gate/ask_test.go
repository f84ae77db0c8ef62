package gate_test

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coven-run/coven/internal/gate"
	"github.com/coven-run/coven/internal/permission"
)

// person gives its answers in order.
type person struct {
	answers []gate.Answer
	asked   []gate.Question
	away    error
}

func (p *person) Ask(_ context.Context, q gate.Question) (gate.Answer, error) {
	p.asked = append(p.asked, q)
	if p.away != nil {
		return gate.Answer{}, p.away
	}
	return p.answers[len(p.asked)-1], nil
}

func careful(t *testing.T) (root string, policy *permission.Policy) {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	ask := []permission.Rule{
		{Permission: permission.FileWrite, Pattern: "/**", Action: permission.Ask},
		{Permission: permission.FileWrite, Pattern: "/src/**", Action: permission.Deny},
		{Permission: permission.BashExecute, Pattern: "rm *", Action: permission.Ask},
		{Permission: permission.BashExecute, Pattern: "git push *", Action: permission.Deny},
	}
	parent := permission.OfPrimary(root, "lead", []permission.Rule{
		{Permission: permission.FileWrite, Pattern: "/docs/**", Action: permission.Allow},
		{Permission: permission.FileWrite, Pattern: "/etc/**", Action: permission.Deny},
		{Permission: permission.BashExecute, Pattern: "*", Action: permission.Allow},
	}, nil, nil)
	return root, permission.OfSubagent(parent, "careful", ask, nil, nil, nil)
}

// C-69: A person may modify a call, but not so that a rule of the agent or of an ancestor denies it. Otherwise the
// person is asked again.
func TestModified(t *testing.T) {
	for _, c := range []struct {
		tool, input, answer string
		again               string // why the person is asked again; empty if the call runs
	}{
		{"Write", `{"file_path":"docs/a","content":"x"}`, `{"file_path":"docs/b","content":"y"}`, ""},
		{"Write", `{"file_path":"docs/a","content":"x"}`, `{"file_path":"src/b","content":"y"}`, "deny file.write /src/**"},
		{"Write", `{"file_path":"docs/a","content":"x"}`, `{"file_path":"etc/b","content":"y"}`, "deny file.write /etc/**"},
		{"Write", `{"file_path":"docs/a","content":"x"}`, `{"file_path":"/etc/x","content":"y"}`, "outside the worktree"},
		{"Write", `{"file_path":"docs/a","content":"x"}`, `{"file_path":".git/config","content":"y"}`, "belongs to git"},
		{"Write", `{"file_path":"docs/a","content":"x"}`, `{"file_path":"docs/b"}`, "content is missing"},
		{"Write", `{"file_path":"docs/a","content":"x"}`, `{"file_path":"docs/b","content":"y","mode":"7"}`, "mode is not a parameter of the call"},
		{"Write", `{"file_path":"docs/a","content":"x"}`, `{"file_path":"docs/b","content":5}`, "content: got number, want string"},
		{"Write", `{"file_path":"docs/a","content":"x"}`, `{"file_path":"","content":"x"}`, "no file_path"},
		{"Write", `{"file_path":"docs/a","content":"x"}`, `[]`, "not a JSON object"},
		{"Bash", `{"command":"rm a"}`, `{"command":"rm b"}`, ""},
		{"Bash", `{"command":"rm a"}`, `{"command":"rm b; git push origin"}`, "deny bash.execute git push *"},
	} {
		_, policy := careful(t)
		f := &fake{}
		someone := &person{answers: []gate.Answer{{Allow: true, Input: json.RawMessage(c.answer)}, {Reason: "User denied approval"}}}
		o := f.options(policy)
		o.Asker = someone
		g := gate.New(o)
		v := g.Decide(t.Context(), gate.Call{ID: "1", Tool: c.tool, Input: json.RawMessage(c.input)})
		if c.again == "" {
			if !v.Allow || string(v.Input) != c.answer || len(someone.asked) != 1 || f.snapshots != 1 || g.Refused("1") {
				t.Errorf("%s to %s: %+v", c.input, c.answer, v)
			}
			continue
		}
		if v.Allow || v.Input != nil || len(someone.asked) != 2 || !strings.Contains(someone.asked[1].Reason, "the modified parameters were refused: ") || !strings.Contains(someone.asked[1].Reason, c.again) || f.snapshots != 0 {
			t.Errorf("%s to %s: %+v, %+v", c.input, c.answer, v, someone.asked)
		}
	}
}

// Calls that a rule denies or allows are not asked about. A call that needs approval is refused if no person
// can be asked.
func TestAsk(t *testing.T) {
	_, policy := careful(t)
	f := &fake{}
	someone := &person{answers: []gate.Answer{{Allow: true, Reason: "approved by ann"}, {Reason: "User denied approval: no"}}}
	o := f.options(policy)
	o.Asker = someone
	g := gate.New(o)
	decide := func(id, tool, input string) gate.Verdict {
		return g.Decide(t.Context(), gate.Call{ID: id, Tool: tool, Input: json.RawMessage(input)})
	}
	if v := decide("1", "Bash", `{"command":"git push origin"}`); v.Allow || len(someone.asked) != 0 {
		t.Errorf("%+v %v", v, someone.asked)
	}
	if v := decide("2", "Read", `{"file_path":"docs/a"}`); !v.Allow || len(someone.asked) != 0 {
		t.Errorf("%+v %v", v, someone.asked)
	}
	if v := decide("3", "Bash", `{"command":"rm a"}`); !v.Allow || v.Input != nil || someone.asked[0].Reversible || someone.asked[0].Subject != "rm a" {
		t.Errorf("%+v %+v", v, someone.asked)
	}
	if v := decide("4", "Write", `{"file_path":"docs/a","content":"x"}`); v.Message != "coven refused Write: User denied approval: no" || !someone.asked[1].Reversible || !g.Refused("4") {
		t.Errorf("%+v %+v", v, someone.asked)
	}
	someone.away = errors.New("nobody is there")
	if v := decide("5", "Bash", `{"command":"rm a"}`); v.Allow || !strings.Contains(v.Message, "nobody could be asked: nobody is there") {
		t.Errorf("%+v", v)
	}
	g = gate.New(f.options(policy))
	if v := decide("6", "Bash", `{"command":"rm a"}`); v.Allow || !strings.Contains(v.Message, "a person would have to approve it") {
		t.Errorf("%+v", v)
	}
}

// While a person is asked, results of other calls are processed.
func TestAskHoldsUpNothing(t *testing.T) {
	_, policy := careful(t)
	f := &fake{}
	o := f.options(policy)
	var g *gate.Gate
	o.Asker = asks(func() gate.Answer {
		g.Ended("0")
		return gate.Answer{Allow: !g.Decided("0") && !g.Refused("0")}
	})
	g = gate.New(o)
	if v := g.Decide(t.Context(), gate.Call{ID: "1", Tool: "Bash", Input: json.RawMessage(`{"command":"rm a"}`)}); !v.Allow {
		t.Errorf("%+v", v)
	}
}

type asks func() gate.Answer

func (a asks) Ask(context.Context, gate.Question) (gate.Answer, error) { return a(), nil }

// An approval for the session is for exactly the same call: the whole command, and the whole path.
func TestExactSubjects(t *testing.T) {
	root, policy := careful(t)
	person := &person{answers: make([]gate.Answer, 9)}
	o := (&fake{}).options(policy)
	o.Asker = person
	g := gate.New(o)
	long := "rm " + strings.Repeat("a", 300)
	for _, call := range []struct{ tool, key, value string }{
		{"Bash", "command", long},
		{"Bash", "command", long + "b"},
		{"Bash", "command", "rm x"},
		{"Bash", "command", "rm " + root + "/x"},
		{"Write", "file_path", root + "/docs/x"},
		{"Write", "file_path", "docs/x"},
		{"Write", "file_path", root + "/docs/" + root + "/docs/x"},
	} {
		input, err := json.Marshal(map[string]string{call.key: call.value, "content": ""})
		if err != nil {
			t.Fatal(err)
		}
		g.Decide(t.Context(), gate.Call{Tool: call.tool, Input: input})
	}
	var exact []string
	for _, q := range person.asked {
		exact = append(exact, q.Exact)
	}
	if len(exact) != 7 {
		t.Fatalf("asked %d times: %+v", len(exact), person.asked)
	}
	slices.Sort(exact)
	if exact = slices.Compact(exact); len(exact) != 6 {
		t.Errorf("%d different subjects, want 6: one file has two spellings", len(exact))
	}
}
