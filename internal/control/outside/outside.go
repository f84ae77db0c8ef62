// Package outside provides the tools that coven offers to agents that it did not start, such as the user's
// own Claude Code, Gemini CLI or another MCP client. coven mcp serve serves them.
//
// coven does not control such an agent. But the agent's calls of these tools pass the same rules as those
// of coven's agents: it reads only files that the rules allow, and an agent that it starts has its own
// task, worktree, gate and record. Nothing lands without a person.
package outside

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/agent"
	"github.com/coven-run/coven/internal/agent/spawn"
	"github.com/coven-run/coven/internal/control"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/file/regularfile"
	"github.com/coven-run/coven/internal/mcp"
	"github.com/coven-run/coven/internal/permission"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/text/shellword"
	"github.com/coven-run/coven/internal/tool"
	"github.com/coven-run/coven/internal/tool/baseline"
)

// Name is the name of an outside agent in rules and reasons.
const Name = "outside"

// Tools returns the tools for one MCP client. Every call opens the project again, because rules and
// definitions may change while the client runs.
func Tools(ctx context.Context, open func(context.Context) (*project.Project, error)) ([]tool.Tool, error) {
	p, err := open(ctx)
	if err != nil {
		return nil, err
	}
	if err := control.ByPerson(p); err != nil {
		return nil, err
	}
	o := outside{open}
	all := []tool.Tool{o.listAgents(), o.spawnAgent()}
	for _, t := range baseline.Tools(baseline.Options{}) {
		t.Call = o.baselineCall(t.Name)
		all = append(all, t)
	}
	return all, nil
}

type outside struct {
	open func(context.Context) (*project.Project, error)
}

// baselineCall returns the Call function of a baseline tool.
func (o outside) baselineCall(name string) func(context.Context, json.RawMessage) (string, error) {
	return func(ctx context.Context, arguments json.RawMessage) (string, error) {
		p, err := o.open(ctx)
		if err != nil {
			return "", err
		}
		rules := permission.OfReader(p.Repo.Checkout, Name, nil, nil, p.Config.Rules())
		tools := baseline.Tools(baseline.Options{Files: p.Search(), Sessions: p.SearchSessions(), Check: func(name permission.Name, path string) error {
			d := rules.Decide(permission.Request{Permission: name, Path: path})
			if !d.Allowed() {
				return errors.New(d.Reason)
			}
			return nil
		}})
		i := slices.IndexFunc(tools, func(t tool.Tool) bool { return t.Name == name })
		return tools[i].Call(ctx, arguments)
	}
}

// listed is an agent in the answer of list_agents.
type listed struct {
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Permissions []string `json:"permissions"`
	Source      string   `json:"source"` // project, user or system
}

func (o outside) listAgents() tool.Tool {
	return tool.Tool{
		Kind: tool.Kind{Name: "list_agents"}, Description: "List the agents that spawn_agent can start, with what each is for and what it may do.",
		Schema: json.RawMessage(`{"type":"object","properties":{},"additionalProperties":false}`), ReadOnly: true,
		Call: func(ctx context.Context, _ json.RawMessage) (string, error) {
			p, err := o.open(ctx)
			if err != nil {
				return "", err
			}
			all := []listed{}
			for _, d := range p.Agents().Agents() {
				all = append(all, listedAs(d))
			}
			text, err := json.MarshalIndent(all, "", "  ")
			if err != nil {
				return "", fmt.Errorf("encode the agents: %w", err)
			}
			return string(text), nil
		},
	}
}

func listedAs(d agent.Definition) listed {
	l := listed{Name: d.Name, Description: d.Description, Permissions: []string{}, Source: d.Source}
	for _, r := range d.Permissions {
		l.Permissions = append(l.Permissions, r.String())
	}
	return l
}

func (o outside) spawnAgent() tool.Tool {
	return tool.Tool{
		Kind: tool.SpawnAgent,
		Description: "Start an agent of coven for one task, and wait for its report; list_agents names them. It works in a git worktree of its own, knows only its task, " +
			"and may do what its definition says. What it changed waits for a person, who can look at it and land it.",
		Schema: json.RawMessage(spawn.Schema), ReadOnly: true, // the caller's files do not change
		Call: func(ctx context.Context, arguments json.RawMessage) (string, error) {
			var r spawn.Request
			if err := json.Unmarshal(arguments, &r); err != nil {
				return "", fmt.Errorf("the arguments cannot be read: %w", err)
			}
			return o.spawn(ctx, r)
		},
	}
}

func (o outside) spawn(ctx context.Context, r spawn.Request) (string, error) {
	p, err := o.open(ctx)
	if err != nil {
		return "", err
	}
	branch, err := control.TargetBranch(ctx, p, "")
	if err != nil {
		return "", withNext(err)
	}
	c, err := control.New(p)
	if err != nil {
		return "", withNext(err)
	}
	defer c.Close()
	var mu sync.Mutex
	var notices []string
	c.Observer.Notice = func(n control.Notice) {
		mu.Lock()
		defer mu.Unlock()
		notices = append(notices, n.Text)
	}
	c.Observer.Event = func(e event.Event) {
		switch e.Type {
		case event.SpawnStarted:
			tool.Progress(ctx, r.Agent+" works")
		case event.AgentTool:
			tool.Progress(ctx, r.Agent+": "+event.As[event.Tool](e).Summary)
		}
	}
	outcome, err := c.Spawn(ctx, grimoires.SpawnRequest(r), control.Options{Onto: branch})
	if err != nil {
		return "", withNext(err)
	}
	mu.Lock()
	defer mu.Unlock()
	return report(ctx, p, outcome, notices)
}

// maxRecord is the maximum size in bytes of the record that the caller gets.
const maxRecord = 1 << 20

// report returns the record of the agent that a session started, and the next steps for its change. If the
// agent failed, it returns its error.
func report(ctx context.Context, p *project.Project, o control.Outcome, notices []string) (string, error) {
	v, err := p.SessionOf(ctx, o.Session)
	if err != nil {
		return "", withNext(err)
	}
	if len(v.Subagents) == 0 {
		return "", fmt.Errorf("it did not start: %s (session %s)", cmp.Or(o.Detail, string(o.Status)), o.Session)
	}
	s := v.Subagents[0]
	if s.Error != nil {
		return "", fmt.Errorf("%s failed: %s: %s\n%s", s.Agent, s.Error.Type, s.Error.Message, spawn.Attribution(s.TraceID, s.ParentChain, s.Task))
	}
	record, err := regularfile.ReadIn(filepath.Join(p.Repo.Root, session.Dir, o.Session), s.ID+".md", maxRecord)
	if err != nil {
		return "", fmt.Errorf("read the record of %s: %w", s.ID, err)
	}
	text := strings.TrimSpace(string(record)) + "\n\nSession: " + o.Session
	if o.Status == session.Waiting {
		text += fmt.Sprintf("\nIts change waits for a person: coven review %[1]s, then coven approve %[1]s or coven reject %[1]s.", shellword.Word(v.Task))
	}
	return strings.Join(append([]string{text}, notices...), "\n"), nil
}

// withNext adds the next command to the text of an error.
func withNext(err error) error {
	if next := exit.Next(err); next != "" {
		return fmt.Errorf("%w\nnext: %s", err, next)
	}
	return err
}

// Inquiries returns the tools that ask the user of the program.
func Inquiries() []mcp.Inquiry {
	return []mcp.Inquiry{{
		Tool: tool.Tool{
			Kind: tool.RequestApproval,
			Description: "Ask the person before you do something that they should decide about, and wait for the answer. " +
				"It fails if they deny it, or if this program cannot ask them.",
			Schema: json.RawMessage(spawn.ApprovalSchema),
		},
		Question: func(arguments json.RawMessage) (string, error) {
			var in spawn.ApprovalRequest
			if err := json.Unmarshal(arguments, &in); err != nil {
				return "", fmt.Errorf("the arguments cannot be read: %w", err)
			}
			undo := "It cannot be undone completely."
			if in.Reversible {
				undo = "The agent says that it can be undone."
			}
			return fmt.Sprintf("An agent asks for approval: %s\nWhy: %s\n%s", in.Action, in.Reason, undo), nil
		},
		Answer: func(r mcp.Reply) (string, error) {
			text := "approved by the user"
			if !r.Approved {
				text = "User denied approval"
			}
			if r.Reason != "" {
				text += ": " + r.Reason
			}
			if !r.Approved {
				return "", errors.New(text)
			}
			return text, nil
		},
	}}
}
