package gate_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/gate"
	"github.com/coven-run/coven/internal/permission"
)

// fake counts the snapshots of a worktree and records decisions.
type fake struct {
	snapshots int
	changes   []gate.Change
	ended     []string
	broken    error
	decisions []event.Decision
	full      error
}

func (f *fake) BeforeCall(_ context.Context, c gate.Change) (event.Snapshot, error) {
	if f.broken != nil {
		return event.Snapshot{}, f.broken
	}
	f.snapshots++
	f.changes = append(f.changes, c)
	return event.Snapshot{N: f.snapshots}, nil
}

func (f *fake) AfterCall(id string) { f.ended = append(f.ended, id) }

func (f *fake) emit(_ event.Type, data any) error {
	if f.full != nil {
		return f.full
	}
	f.decisions = append(f.decisions, data.(event.Decision))
	return nil
}

// options returns the options of a gate whose workspace and record are f.
func (f *fake) options(policy *permission.Policy) gate.Options {
	return gate.Options{Policy: policy, Workspace: f, Emit: f.emit}
}

func TestDecide(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(root, ".git"), 0o755); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		tool, input string
		allow       bool
		snapshots   int
		reason      string
	}{
		{"Read", `{"file_path":"` + root + `/.env"}`, true, 0, ""},
		{"Write", `{"file_path":"` + root + `/a.txt","content":"x"}`, true, 1, ""},
		{"Edit", `{"file_path":"a.txt","old_string":"x","new_string":"y"}`, true, 1, ""},
		{"NotebookEdit", `{"notebook_path":"` + root + `/n.ipynb"}`, true, 1, ""},
		{"Bash", `{"command":"ls"}`, true, 1, ""},

		{"Read", `{"file_path":"/etc/passwd"}`, false, 0, "outside the worktree"},
		{"Write", `{"file_path":"../x"}`, false, 0, "outside the worktree"},
		{"Write", `{"file_path":".git/config"}`, false, 0, "belongs to git"},
		{"Edit", `{"file_path":".coven/config.yaml"}`, false, 0, "belongs to coven"},
		{"Write", `{"path":"a.txt"}`, false, 0, "no file_path"},
		{"Write", `{"file_path":5}`, false, 0, "no file_path"},
		{"Write", `[]`, false, 0, "not a JSON object"},
		{"Bash", `{"command":""}`, false, 0, "no command"},
		{"WebFetch", `{"url":"http://127.0.0.1"}`, false, 0, "no permission"},
		{"mcp__other__write", `{}`, false, 0, "no permission"},
	}
	for _, tt := range tests {
		f := &fake{}
		g := gate.New(f.options(permission.OfBuild(root)))
		call := gate.Call{ID: "t1", Tool: tt.tool, Input: json.RawMessage(tt.input)}
		v := g.Decide(t.Context(), call)
		if v.Allow != tt.allow || f.snapshots != tt.snapshots || !strings.Contains(v.Message, tt.reason) {
			t.Errorf("%s %s = %+v with %d snapshots", tt.tool, tt.input, v, f.snapshots)
		}
		if len(f.decisions) != 1 || f.decisions[0].Allowed != tt.allow || f.decisions[0].ID != "t1" || f.decisions[0].Snapshot != tt.snapshots {
			t.Errorf("%s %s: recorded %+v", tt.tool, tt.input, f.decisions)
		}
		if g.Refused("t1") == tt.allow || g.Refused("t2") {
			t.Errorf("%s: Refused is wrong", tt.tool)
		}
		if !g.Decided("t1") || g.Decided("t2") {
			t.Errorf("%s: Decided is wrong", tt.tool)
		}
	}
}

// A call is refused if the worktree cannot be saved or the decision cannot be recorded.
func TestFailsClosed(t *testing.T) {
	write := gate.Call{ID: "t1", Tool: "Write", Input: json.RawMessage(`{"file_path":"a"}`)}
	f := &fake{broken: errors.New("disk full")}
	if v := gate.New(f.options(permission.OfBuild(t.TempDir()))).Decide(t.Context(), write); v.Allow || !strings.Contains(v.Message, "disk full") {
		t.Errorf("without a snapshot: %+v", v)
	}
	f = &fake{full: errors.New("no space")}
	g := gate.New(f.options(permission.OfBuild(t.TempDir())))
	if v := g.Decide(t.Context(), write); v.Allow || !strings.Contains(v.Message, "no space") {
		t.Errorf("without a record: %+v", v)
	}
	if g.Decided("t1") {
		t.Error("a call that is not on record counts as decided")
	}
}

// The workspace is notified of the file that a call may change, and of the end of the call. A call with
// background processes does not end with its result.
func TestChanges(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		tool, input, path string
		lingers           bool
	}{
		{"Write", `{"file_path":"a/b.txt"}`, root + "/a/b.txt", false},
		{"Edit", `{"file_path":"` + root + `/a.txt"}`, root + "/a.txt", false},
		{"Read", `{"file_path":"a.txt"}`, "none", false},
		{"Bash", `{"command":"make && make test >&2 2>&1 &>log"}`, "", false},
		{"Bash", `{"command":"make","run_in_background":true}`, "", true},
		{"Bash", `{"command":"make & sleep 1"}`, "", true},
		{"Bash", `{"command":"nohup make"}`, "", true},
	} {
		f := &fake{}
		g := gate.New(f.options(permission.OfBuild(root)))
		if v := g.Decide(t.Context(), gate.Call{ID: "t1", Tool: tt.tool, Input: json.RawMessage(tt.input)}); !v.Allow {
			t.Fatalf("%s: %+v", tt.input, v)
		}
		if tt.path == "none" {
			if g.Ended("t1"); len(f.changes)+len(f.ended) > 0 {
				t.Errorf("%s: %+v", tt.input, f)
			}
			continue
		}
		if len(f.changes) != 1 || f.changes[0].Path != tt.path || f.changes[0].Call != "t1" {
			t.Errorf("%s: %+v", tt.input, f.changes)
		}
		g.Ended("another")
		if g.Ended("t1"); (len(f.ended) == 0) != tt.lingers {
			t.Errorf("%s: ended %v at its result", tt.input, f.ended)
		}
		g.Ended("t1")
		if g.Close(); len(f.ended) != 1 || f.ended[0] != "t1" {
			t.Errorf("%s: ended %v", tt.input, f.ended)
		}
	}
}

func TestSummary(t *testing.T) {
	for input, want := range map[string]string{
		`{"file_path":"/w/src/app.ts"}`: "Write src/app.ts",
		`{"file_path":"/x/app.ts"}`:     "Write /x/app.ts",
		`{}`:                            "Write",
	} {
		if got := gate.Summary(gate.Call{Tool: "Write", Input: json.RawMessage(input)}, "/w"); got != want {
			t.Errorf("Summary(%s) = %q, want %q", input, got, want)
		}
	}
	long := gate.Summary(gate.Call{Tool: "Bash", Input: json.RawMessage(`{"command":"` + strings.Repeat("é ", 300) + `"}`)}, "/w")
	if n := len([]rune(long)); n != len("Bash ")+201 {
		t.Errorf("a long command is %d runes", n)
	}
}

// C-31: The gate refuses a spawn by an agent that is too deep, even if a rule grants it.
func TestDecideDepth(t *testing.T) {
	f := &fake{}
	o := f.options(permission.OfBuild(t.TempDir()))
	g := gate.New(o)
	call := gate.Call{ID: "1", Tool: "mcp__coven__spawn_agent", Input: json.RawMessage(`{"agent":"helper","task":"x"}`)}
	if v := g.Decide(t.Context(), call); !v.Allow {
		t.Errorf("without a depth: %+v", v)
	}
	o.Descend = func() error { return errors.New("too deep") }
	g = gate.New(o)
	if v := g.Decide(t.Context(), call); v.Allow || !strings.HasSuffix(v.Message, "too deep") {
		t.Errorf("too deep: %+v", v)
	}
	if v := g.Decide(t.Context(), gate.Call{ID: "2", Tool: "Read", Input: json.RawMessage(`{"file_path":"a"}`)}); !v.Allow {
		t.Errorf("another tool: %+v", v)
	}
}

// A call that is refused because the agent is being stopped reports that reason, not a storage error.
func TestDecideWhileStopping(t *testing.T) {
	f := &fake{broken: context.Canceled}
	g := gate.New(f.options(permission.OfBuild(t.TempDir())))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	v := g.Decide(ctx, gate.Call{ID: "1", Tool: "Write", Input: json.RawMessage(`{"file_path":"a"}`)})
	if v.Allow || !strings.HasSuffix(v.Message, "the agent was stopped") {
		t.Errorf("%+v", v)
	}
}

// Long input does not fill the event log.
func TestRecordIsShort(t *testing.T) {
	f := &fake{}
	g := gate.New(f.options(permission.OfBuild(t.TempDir())))
	long := strings.Repeat("x", 1<<20)
	for _, call := range []gate.Call{
		{ID: long, Tool: long, Input: json.RawMessage(`{}`)},
		{ID: "1", Tool: "Read", Input: json.RawMessage(`{"file_path":"/` + long + `"}`)},
		{ID: "2", Tool: "Bash", Input: json.RawMessage(`{"command":"` + long + `"}`)},
		{ID: "3", Tool: "mcp__coven__spawn_agent", Input: json.RawMessage(`{"agent":"` + long + `"}`)},
	} {
		g.Decide(t.Context(), call)
		text, err := json.Marshal(f.decisions[len(f.decisions)-1])
		if err != nil || len(text) > 10_000 {
			t.Errorf("%.20s: %d bytes, %v", call.Tool, len(text), err)
		}
		if n := len([]rune(f.decisions[len(f.decisions)-1].ID)); n > 300 {
			t.Errorf("an ID of %d runes", n)
		}
	}
	for _, c := range f.changes {
		if len(c.Note) > 10_000 {
			t.Errorf("a note of %d bytes", len(c.Note))
		}
	}
}
