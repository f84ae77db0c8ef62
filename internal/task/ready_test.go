package task

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

func TestReadyRules(t *testing.T) {
	const done, other = `{"id":"done","status":"closed"}`, `{"id":"open"}`
	dep := func(on, kind string) string {
		return `{"id":"x","dependencies":[{"issue_id":"x","depends_on_id":"` + on + `","type":"` + kind + `"}]}`
	}
	for name, c := range map[string]struct {
		lines    []string
		blockers string // of x; "-" means that x is not ready for another reason
	}{
		"open":                  {[]string{`{"id":"x"}`}, ""},
		"no status":             {[]string{`{"id":"x","status":null}`}, ""},
		"in progress":           {[]string{`{"id":"x","status":"in_progress"}`}, "-"},
		"blocked":               {[]string{`{"id":"x","status":"blocked"}`}, "-"},
		"deferred":              {[]string{`{"id":"x","status":"deferred"}`}, "-"},
		"closed":                {[]string{`{"id":"x","status":"closed"}`}, "-"},
		"a status of their own": {[]string{`{"id":"x","status":"review"}`}, "-"},
		"assigned":              {[]string{`{"id":"x","assignee":"bob"}`}, "-"},
		"epic":                  {[]string{`{"id":"x","issue_type":"epic"}`}, "-"},
		"gate":                  {[]string{`{"id":"x","issue_type":"gate"}`}, "-"},
		"milestone":             {[]string{`{"id":"x","issue_type":"milestone"}`}, "-"},
		"event":                 {[]string{`{"id":"x","issue_type":"event"}`}, "-"},
		"convoy":                {[]string{`{"id":"x","issue_type":"convoy"}`}, "-"},
		"pinned":                {[]string{`{"id":"x","pinned":true}`}, "-"},
		"template":              {[]string{`{"id":"x","is_template":1}`}, "-"},
		"ephemeral":             {[]string{`{"id":"x","ephemeral":true}`}, "-"},
		"deferred to later":     {[]string{`{"id":"x","defer_until":"2026-12-01T10:00:01Z"}`}, "-"},
		"deferred until now":    {[]string{`{"id":"x","defer_until":"2026-12-01T10:00:00Z"}`}, ""},
		"blocks, open":          {[]string{other, dep("open", "blocks")}, "open"},
		"blocks, no type":       {[]string{other, dep("open", "")}, "open"},
		"blocks, later in file": {[]string{dep("open", "blocks"), other}, "open"},
		"blocks, closed":        {[]string{done, dep("done", "blocks")}, ""},
		"blocks, gone":          {[]string{dep("nowhere", "blocks")}, ""},
		"blocks, tombstone":     {[]string{`{"id":"t","status":"tombstone"}`, dep("t", "blocks")}, ""},
		"blocks, pinned":        {[]string{`{"id":"p","status":"pinned"}`, dep("p", "blocks")}, ""},
		"blocks, deferred":      {[]string{`{"id":"d","status":"deferred"}`, dep("d", "blocks")}, "d"},
		"blocks, elsewhere":     {[]string{dep("external:p:c", "blocks")}, "external:p:c"},
		"conditional":           {[]string{other, dep("open", "conditional-blocks")}, "open"},
		"waits for":             {[]string{other, dep("open", "waits_for")}, ""},
		"waits for, elsewhere":  {[]string{dep("external:p:c", "waits-for")}, "external:p:c"},
		"waits for children":    {[]string{other, `{"id":"b","parent":"open"}`, `{"id":"a","parent":"open"}`, `{"id":"c","parent":"open","status":"closed"}`, dep("open", "waits-for")}, "a b"},
		"waits for closed ones": {[]string{done, other, `{"id":"a","parent":"open","status":"closed"}`, `{"id":"p","parent":"open","status":"pinned"}`, dep("open", "waits-for")}, ""},
		"waits for one child": {[]string{
			other, `{"id":"a","parent":"open","status":"closed"}`, `{"id":"b","parent":"open"}`,
			`{"id":"x","dependencies":[{"depends_on_id":"open","type":"waits-for","metadata":"{\"gate\":\"any-children\"}"}]}`,
		}, ""},
		"waits for one child, none closed": {[]string{
			other, `{"id":"b","parent":"open"}`, `{"id":"x","dependencies":[{"depends_on_id":"open","type":"waits-for","metadata":{"gate":"any-children"}}]}`,
		}, "b"},
		"waits and blocks":    {[]string{other, `{"id":"x","dependencies":[{"depends_on_id":"open","type":"waits-for","metadata":"{\"also_blocks\":true}"}]}`}, "open"},
		"related":             {[]string{other, dep("open", "related")}, ""},
		"discovered from":     {[]string{other, dep("open", "discovered-from")}, ""},
		"full shape":          {[]string{other, `{"id":"x","dependencies":[{"id":"open","title":"T","dependency_type":"blocks"}]}`}, "open"},
		"twice the same":      {[]string{other, `{"id":"x","dependencies":[{"depends_on_id":"open","type":"blocks"},{"depends_on_id":"open","type":"waits-for"}]}`}, "open"},
		"itself":              {[]string{dep("x", "blocks")}, "x"},
		"open parent":         {[]string{`{"id":"e","issue_type":"epic"}`, dep("e", "parent-child")}, ""},
		"blocked parent":      {[]string{other, `{"id":"e","dependencies":[{"depends_on_id":"open","type":"blocks"}]}`, dep("e", "parent_child")}, "open"},
		"parent by member":    {[]string{other, `{"id":"e","dependencies":[{"depends_on_id":"open","type":"blocks"}]}`, `{"id":"x","parent":"e"}`}, "open"},
		"parent says blocked": {[]string{`{"id":"e","status":"blocked"}`, dep("e", "parent-child")}, "e"},
		"deferred parent":     {[]string{`{"id":"e","defer_until":"2027-01-01"}`, dep("e", "parent-child")}, "e"},
		"closed parent":       {[]string{other, `{"id":"e","status":"closed","dependencies":[{"depends_on_id":"open","type":"blocks"}]}`, dep("e", "parent-child")}, ""},
		"grandparent": {[]string{
			other, `{"id":"g","dependencies":[{"depends_on_id":"open","type":"blocks"}]}`, `{"id":"e","parent":"g"}`, dep("e", "parent-child"),
		}, "open"},
		"parents in a circle": {[]string{`{"id":"e","parent":"x"}`, dep("e", "parent-child")}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := tracker(t, strings.Join(c.lines, "\n")+"\n")
			ready, err := f.Ready(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			is := slices.ContainsFunc(ready, func(t Task) bool { return t.ID == "x" })
			if want := c.blockers == ""; is != want {
				t.Errorf("ready: %v, want %v", is, want)
			}
			blockers, err := f.Blockers(t.Context(), "x")
			if err != nil {
				t.Fatal(err)
			}
			if got, want := strings.Join(blockers, " "), strings.Trim(c.blockers, "-"); got != want {
				t.Errorf("blockers %q, want %q", got, want)
			}
		})
	}
}

func TestOrder(t *testing.T) {
	f := tracker(t, strings.Join([]string{
		`{"id":"late","priority":1,"created_at":"2026-01-03T00:00:00Z"}`,
		`{"id":"b","priority":1,"created_at":"2026-01-02T00:00:00Z"}`,
		`{"id":"a","priority":1,"created_at":"2026-01-02T01:00:00+01:00"}`,
		`{"id":"usual","created_at":"2020-01-01T00:00:00Z"}`,
		`{"id":"urgent","priority":0,"created_at":"2026-01-09T00:00:00.5Z"}`,
	}, "\n"))
	for name, list := range map[string]func() ([]Task, error){
		"List":  func() ([]Task, error) { return f.List(t.Context()) },
		"Ready": func() ([]Task, error) { return f.Ready(t.Context()) },
	} {
		all, err := list()
		if err != nil {
			t.Fatal(err)
		}
		if got := ids(all); got != "urgent a b late usual" {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func TestBlockersOfNothing(t *testing.T) {
	if _, err := tracker(t, "").Blockers(t.Context(), "x"); !errors.Is(err, ErrNotFound) {
		t.Errorf("got %v", err)
	}
}
