package driver

import (
	"reflect"
	"strings"
	"testing"

	"github.com/coven-run/coven/plugins/provider"
)

// The chunks of a text are joined until another event arrives, and events that a CLI repeats from an
// earlier run are dropped.
func TestAssembly(t *testing.T) {
	part := func(text string) provider.Event { return provider.Chunk{Text: text} }
	thought := func(text string) provider.Event { return provider.Chunk{Text: text, Reasoning: true} }
	half := strings.Repeat("x", maxJoined/2+1)
	for name, test := range map[string]struct{ in, want []provider.Event }{
		"texts": {
			[]provider.Event{part("a"), part("b"), thought("c"), thought("d"), part("e"), provider.Result{OK: true}},
			[]provider.Event{provider.Text{Text: "ab"}, provider.Reasoning{Text: "cd"}, provider.Text{Text: "e"}, provider.Result{OK: true}},
		},
		"usage": { // of a running answer, and of a finished one
			[]provider.Event{part("a"), provider.Spent{ID: "1"}, part("b"), provider.Spent{Next: true}, part("c")},
			[]provider.Event{provider.Spent{ID: "1"}, provider.Text{Text: "ab"}, provider.Spent{Next: true}, provider.Text{Text: "c"}},
		},
		"blank": {[]provider.Event{part(" \n"), provider.ToolCall{ID: "c"}}, []provider.Event{provider.ToolCall{ID: "c"}}},
		"huge":  {[]provider.Event{part(half), part(half)}, []provider.Event{provider.Text{Text: half}, provider.Text{Text: half}}},
		"repeated": {
			[]provider.Event{
				provider.Asked{ID: "1"},
				part("old"), thought("old"),
				provider.Text{Text: "old"},
				provider.ToolCall{ID: "c"},
				provider.ToolResult{ID: "c"},
				provider.Spent{ID: "1"},
				provider.Spent{Next: true},
				provider.Acknowledged{},
				provider.Retry{},
				provider.Asked{ID: "2"},
				provider.Started{},
				part("new"),
			},
			[]provider.Event{provider.Asked{ID: "1"}, provider.Retry{}, provider.Asked{ID: "2"}, provider.Started{}, provider.Text{Text: "new"}},
		},
		"not asked": {[]provider.Event{provider.Text{Text: "a"}, provider.Started{}}, []provider.Event{provider.Text{Text: "a"}, provider.Started{}}},
	} {
		var a assembly
		var got []provider.Event
		for _, e := range test.in {
			got = append(got, a.add(e)...)
		}
		if got = append(got, a.flush()...); !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s: %.300v, want %.300v", name, got, test.want)
		}
	}
}
