package launch

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/driver"
	"github.com/coven-run/coven/internal/gate"
	"github.com/coven-run/coven/internal/process"
	"github.com/coven-run/coven/internal/sandbox"
	"github.com/coven-run/coven/internal/tool"
	"github.com/coven-run/coven/internal/tool/command"
)

// programs runs the programs that the tools of one agent start: in the fence of its task, one at a time,
// known as its own.
type programs struct {
	launcher *Launcher
	job      driver.Job
	server   *driver.ToolServer
	one      sync.Mutex // held while one runs
}

func (p *programs) shell(ctx context.Context, text string, timeout time.Duration) (process.Exit, []byte, error) {
	return p.run(ctx, []string{"bash", "-c", text}, timeout)
}

func (p *programs) run(ctx context.Context, argv []string, timeout time.Duration) (process.Exit, []byte, error) {
	p.one.Lock()
	defer p.one.Unlock()
	spec, over := p.server.Pass(process.Spec{Argv: argv, Dir: p.job.Dir, Env: p.job.Env, Timeout: timeout})
	defer over()
	w := p.launcher.Workspace
	exit, output, err := w.RunWith(ctx, sandbox.Access{ReadOnly: p.job.ReadOnly, Apart: true, Connect: []string{p.server.Dir()}}, spec)
	return exit, []byte(w.Secrets.Text(string(output))), err
}

// tools returns command tools as an agent has them. A call runs only if the gate allowed it: an agent CLI
// asks the gate first, and so does the loop, but a program of the agent could not.
func (p *programs) tools(commands map[string]grimoires.CommandTool, g *gate.Gate) (all []tool.Tool) {
	for _, name := range slices.Sorted(maps.Keys(commands)) {
		t := command.Tool(name, commands[name], p.run)
		all = append(all, redeemed(t, g, ""))
	}
	return all
}

// redeemed returns a tool whose calls run only if the gate allowed them. of is server/tool of a tool of an MCP server.
func redeemed(t tool.Tool, g *gate.Gate, of string) tool.Tool {
	call := t.Call
	t.Call = func(ctx context.Context, arguments json.RawMessage) (string, error) {
		if !g.Redeem(gate.Call{Tool: t.Name, Input: arguments}, of) {
			return "", errors.New("coven refused " + t.Name + ": the call did not pass the gate")
		}
		return call(ctx, arguments)
	}
	return t
}

// commandsOf returns the command tools that an agent has.
func (l *Launcher) commandsOf(who role) map[string]grimoires.CommandTool {
	has := map[string]grimoires.CommandTool{}
	for name, d := range l.Plan.Tools {
		if l.has(who, command.Tool(name, d, nil)) {
			has[name] = d
		}
	}
	return has
}

// commandText returns the func by which the gate judges calls of command tools.
func commandText(commands map[string]grimoires.CommandTool) func(gate.Call) (string, error) {
	return func(call gate.Call) (string, error) {
		d, ok := commands[gate.ToolName(call)]
		if !ok {
			return "", nil
		}
		return command.Text(d, call.Input)
	}
}
