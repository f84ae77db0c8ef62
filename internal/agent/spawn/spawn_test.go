package spawn_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/coven-run/coven/internal/agent/spawn"
	"github.com/coven-run/coven/internal/permission"
)

// admission knows the given agents.
func admission(agents map[string]spawn.Definition) spawn.Admission {
	return spawn.Admission{
		MaxDepth: spawn.MaxDepth, DefaultModel: "sonnet",
		KnowsModel: func(model string) error {
			if model == "haiku" {
				return nil
			}
			return errors.New("invalid model")
		},
		Find: func(name string) (spawn.Definition, error) {
			d, ok := agents[name]
			if !ok {
				return d, errors.New("agent not found: '" + name + "'")
			}
			return d, nil
		},
	}
}

func allow(names ...permission.Name) (rules []permission.Rule) {
	for _, name := range names {
		rules = append(rules, permission.Rule{Permission: name, Pattern: permission.Everything, Action: permission.Allow})
	}
	return rules
}

// primary returns the record of an agent at depth 0 whose definition grants permissions.
func primary(names ...permission.Name) spawn.Caller {
	return spawn.Caller{
		Agent: "lead", Chain: []string{spawn.User, "lead"}, Path: "agent#1",
		Policy: permission.OfPrimary("/w", "lead", allow(names...), nil, nil),
	}
}

// C-106 C-114: The results of requests.
func TestAdmit(t *testing.T) {
	t.Parallel()
	h := admission(map[string]spawn.Definition{
		"plain":  {},
		"writer": {Model: "opus", Permissions: allow(permission.FileRead, permission.FileWrite)},
		"lead2":  {Mode: "primary"},
	})
	reads := primary(permission.FileRead)
	many := slices.Repeat([]string{"file.read"}, 101)
	for name, test := range map[string]struct {
		caller  spawn.Caller
		request spawn.Request
		want    string // permissions, model and source, or the error
	}{
		"inherits":                 {reads, spawn.Request{Agent: "plain", Task: "x"}, "FilesystemRead, SemanticSearch, agent.spawn sonnet default"},
		"definition within":        {reads, spawn.Request{Agent: "writer", Task: "x"}, "FilesystemRead, SemanticSearch opus definition"}, // C-22
		"definition and parent":    {primary(permission.FileRead, permission.FileWrite), spawn.Request{Agent: "writer", Task: "x"}, "FilesystemRead, FilesystemWrite, SemanticSearch opus definition"},
		"constrained to nothing":   {primary(permission.FileWrite, permission.BashExecute), spawn.Request{Agent: "plain", Task: "x", Permissions: &[]string{}}, "FilesystemRead, SemanticSearch sonnet default"}, // C-24
		"constrained":              {primary(permission.FileWrite, permission.BashExecute), spawn.Request{Agent: "plain", Task: "x", Permissions: &[]string{"FilesystemWrite"}}, "FilesystemRead, FilesystemWrite, SemanticSearch sonnet default"},
		"escalates":                {reads, spawn.Request{Agent: "writer", Task: "x", Permissions: &[]string{"FilesystemRead", "FilesystemWrite"}}, "Subagent requested FilesystemWrite but parent doesn't have it (parent has: FilesystemRead, SemanticSearch, agent.spawn)"}, // C-25 C-113
		"escalates by dotted name": {reads, spawn.Request{Agent: "writer", Task: "x", Permissions: &[]string{"net.fetch"}}, "Subagent requested net.fetch but parent doesn't have it (parent has: FilesystemRead, SemanticSearch, agent.spawn)"},
		"unknown permission":       {reads, spawn.Request{Agent: "writer", Task: "x", Permissions: &[]string{"ReadFilesystem"}}, "invalid permission 'ReadFilesystem' (did you mean"},
		"model":                    {reads, spawn.Request{Agent: "writer", Task: "x", Model: "haiku"}, "FilesystemRead, SemanticSearch haiku override"}, // C-44
		"unknown model":            {reads, spawn.Request{Agent: "writer", Task: "x", Model: "haikou"}, "invalid model"},
		"unknown agent":            {reads, spawn.Request{Agent: "nobody", Task: "x"}, "agent not found: 'nobody'"},
		"only primary":             {reads, spawn.Request{Agent: "lead2", Task: "x"}, "agent 'lead2' has mode primary and cannot be started by another agent"},
		"huge task":                {reads, spawn.Request{Agent: "plain", Task: strings.Repeat("x", 1<<20)}, "the task for agent 'plain' has 1048576 bytes, the maximum is 262144"},
		"full task":                {reads, spawn.Request{Agent: "plain", Task: strings.Repeat("x", 256<<10)}, "FilesystemRead, SemanticSearch, agent.spawn sonnet default"},
		"huge agent":               {reads, spawn.Request{Agent: strings.Repeat("x", 1<<20), Task: "x"}, "the name of the agent has 1048576 bytes, the maximum is 256"},
		"huge model":               {reads, spawn.Request{Agent: "plain", Task: "x", Model: strings.Repeat("x", 257)}, "model has 257 bytes, the maximum is 256"},
		"huge task_id":             {reads, spawn.Request{Agent: "plain", Task: "x", TaskID: strings.Repeat("x", 257)}, "task_id has 257 bytes, the maximum is 256"},
		"huge permission":          {reads, spawn.Request{Agent: "plain", Task: "x", Permissions: &[]string{"file.read", strings.Repeat("x", 257)}}, "a permission has 257 bytes, the maximum is 256"},
		"many permissions":         {reads, spawn.Request{Agent: "plain", Task: "x", Permissions: &many}, "permissions has 101 elements, the maximum is 100"},
		"no task":                  {reads, spawn.Request{Agent: "plain", Task: " \n"}, "the task for agent 'plain' is empty"},
		"may not": {
			spawn.Caller{Agent: "lead", Policy: permission.OfReader("/w", "reviewer", nil, nil, nil)},
			spawn.Request{Agent: "plain", Task: "x"},
			"agent 'lead' may not start agents: it lacks the permission agent.spawn",
		},
	} {
		t.Run(name, func(t *testing.T) {
			child, err := h.Admit(test.caller, test.request)
			got := permission.Join(child.Permissions) + " " + child.Model + " " + child.ModelSource
			if err != nil {
				got = err.Error()
			}
			if got != test.want && (err == nil || !strings.HasPrefix(got, test.want)) {
				t.Errorf("got %q, want %q", got, test.want)
			}
			if err == nil && (child.Depth != 1 || !slices.Equal(child.Chain, []string{"user", "lead", test.request.Agent}) || child.Inherited != (test.request.Permissions == nil)) {
				t.Errorf("child: %+v", child)
			}
		})
	}
}

// A rule about one agent applies to all kinds of requests, including those that pass no gate.
func TestAdmitByRule(t *testing.T) {
	t.Parallel()
	h := admission(map[string]spawn.Definition{"plain": {}, "other": {}})
	rule := func(agent string, action permission.Action) []permission.Rule {
		return []permission.Rule{{Permission: permission.AgentSpawn, Pattern: agent, Action: action}}
	}
	person := func(rules []permission.Rule) spawn.Caller {
		return spawn.Caller{Agent: spawn.User, Chain: []string{spawn.User}, Policy: permission.OfPrimary("/w", spawn.User, nil, nil, rules)}
	}
	agent := func(rules []permission.Rule) spawn.Caller {
		return spawn.Caller{Agent: "lead", Chain: []string{spawn.User, "lead"}, Policy: permission.OfPrimary("/w", "lead", rules, nil, nil)}
	}
	for name, test := range map[string]struct {
		caller spawn.Caller
		want   string
	}{
		"denied to an agent": {agent(rule("plain", permission.Deny)), "agent 'lead' may not start agent 'plain': deny agent.spawn plain (agent lead)"},
		"asked of an agent":  {agent(rule("plain", permission.Ask)), "agent 'lead' may not start agent 'plain': ask agent.spawn plain (agent lead)"},
		"denied to a person": {person(rule("pl*", permission.Deny)), "agent 'user' may not start agent 'plain': deny agent.spawn pl* (your configuration)"},
		"a person may":       {person(rule("plain", permission.Ask)), ""},
		"another agent":      {agent(rule("other", permission.Deny)), ""},
	} {
		_, err := h.Admit(test.caller, spawn.Request{Agent: "plain", Task: "x"})
		if got := fmt.Sprint(err); err == nil && test.want != "" || err != nil && got != test.want {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}

// C-106: Siblings do not share the array of their caller's chain.
func TestChainsOfSiblings(t *testing.T) {
	t.Parallel()
	h := admission(map[string]spawn.Definition{"plain": {}, "other": {}})
	caller := primary(permission.FileRead)
	caller.Chain = append(make([]string, 0, 10), caller.Chain...)
	first, err := h.Admit(caller, spawn.Request{Agent: "plain", Task: "x"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Admit(caller, spawn.Request{Agent: "other", Task: "x"}); err != nil {
		t.Fatal(err)
	}
	if want := []string{"user", "lead", "plain"}; !slices.Equal(first.Chain, want) {
		t.Errorf("the chain of the first is %v, want %v", first.Chain, want)
	}
}

// C-35 C-149: The depth is a parameter. A larger one allows deeper trees, and the message contains it.
func TestAdmitDepth(t *testing.T) {
	t.Parallel()
	h := admission(map[string]spawn.Definition{"plain": {}})
	for most := 1; most <= 4; most++ {
		h.MaxDepth = most
		caller := primary(permission.FileRead, permission.AgentSpawn)
		for depth := 0; ; depth++ {
			child, err := h.Admit(caller, spawn.Request{Agent: "plain", Task: "x"})
			if depth+1 < most {
				if err != nil || child.Depth != depth+1 || len(child.Chain) != depth+3 {
					t.Fatalf("at depth %d of %d: %+v, %v", depth, most, child, err)
				}
				caller = spawn.Caller{Agent: "plain", Depth: child.Depth, Chain: child.Chain, Policy: child.Policy}
				continue
			}
			tooDeep := (*spawn.DepthError)(nil)
			if !errors.As(err, &tooDeep) || tooDeep.Max != most || !strings.Contains(err.Error(), "Maximum agent depth ("+string(rune('0'+most))+") exceeded.") {
				t.Errorf("at depth %d of %d: %v", depth, most, err)
			}
			break
		}
	}
}
