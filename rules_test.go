// Package coven_test holds the rules of the house: who may import whom, what
// every package says of itself, and which names nobody uses.
package coven_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/coven-run/coven/"

// imports is the table of the house: package -> what of ours it may import,
// tests left out. A new package fails until its row is here.
var imports = map[string][]string{
	"cmd/coven": {"internal/cli/root", "internal/lazyregexp", "internal/process/early"},
	"runner": {
		"internal/lazyregexp",
		"grimoires", "internal/driver", "internal/oneline", "internal/budget", "internal/clock", "internal/failpoint", "internal/event", "internal/findings", "internal/shellword", "internal/usage",
		"plugins/arbiter", "plugins/pluginerr", "plugins/provider", "plugins/reviewer", "plugins/hostservice", "runner/engine", "internal/exit",
	},
	"runner/engine": {"internal/lazyregexp", "grimoires", "internal/budget", "internal/event", "internal/findings", "internal/tmpl", "plugins/arbiter", "plugins/reviewer"},
	"runner/workflowtest": {
		"grimoires", "internal/event", "internal/findings", "internal/schema", "internal/yamldoc", "plugins/arbiter", "plugins/reviewer", "runner", "runner/engine",
	},
	"worktree":               {"internal/lazyregexp", "internal/diskusage", "internal/failpoint", "internal/regularfile", "internal/shellword", "worktree/checkout", "worktree/internal/file", "worktree/internal/git", "worktree/internal/lock", "worktree/internal/repo", "worktree/tripwire", "internal/exit"},
	"worktree/internal/repo": {"internal/lazyregexp", "internal/exit", "internal/failpoint", "internal/regularfile", "internal/shellword", "worktree/checkout", "worktree/tripwire", "worktree/internal/file", "worktree/internal/git", "worktree/internal/lock"},
	"worktree/internal/file": {"internal/regularfile"},
	"worktree/internal/lock": {},
	"worktree/tripwire":      {"internal/lazyregexp", "internal/regularfile"},
	"worktree/checkout":      {"internal/failpoint", "internal/regularfile", "internal/shellword", "worktree/internal/git", "internal/exit"},
	"worktree/internal/git":  {"internal/lazyregexp"},
	"grimoires": {
		"internal/lazyregexp",
		"internal/permission", "internal/budget", "internal/didyoumean", "internal/exit", "internal/oneline", "internal/regularfile", "internal/schema",
		"internal/mcp/servers", "internal/tmpl", "internal/yamldoc",
	},

	"plugins":           {"internal/lazyregexp", "plugins/arbiter", "plugins/pluginerr", "plugins/internal/wire", "plugins/model", "plugins/provider", "plugins/reviewer", "internal/exit"},
	"plugins/arbiter":   {"plugins/reviewer", "plugins/hostservice"},
	"plugins/pluginerr": {},
	"plugins/model":     {"plugins/provider"},
	"plugins/provider":  {"internal/lazyregexp", "plugins/pluginerr"},
	"plugins/plugintest": {
		"internal/lazyregexp",
		"plugins", "plugins/arbiter", "plugins/pluginerr", "plugins/model", "plugins/provider", "plugins/reviewer", "plugins/hostservice",
	},
	"plugins/proto":       {},
	"plugins/reviewer":    {"plugins/pluginerr", "plugins/hostservice"},
	"plugins/hostservice": {},
	"plugins/internal/wire": {
		"plugins/arbiter", "plugins/pluginerr", "plugins/internal/proto/coven/plugin/v1", "plugins/model", "plugins/provider",
		"plugins/reviewer", "plugins/hostservice",
	},
	"plugins/builtin/agent":                  {"plugins/arbiter", "plugins/reviewer", "plugins/hostservice"},
	"plugins/builtin/command":                {"internal/lazyregexp", "plugins/pluginerr", "plugins/reviewer", "plugins/hostservice"},
	"plugins/builtin/scripted":               {"internal/lazyregexp", "plugins/model", "plugins/provider"},
	"plugins/builtin/endpoint":               {"internal/budget", "plugins/model", "plugins/pluginerr", "plugins/provider"},
	"plugins/builtin/anthropic":              {"plugins/builtin/endpoint", "plugins/model", "plugins/provider"},
	"plugins/builtin/openai":                 {"plugins/builtin/endpoint", "plugins/model", "plugins/pluginerr", "plugins/provider"},
	"plugins/builtin/rules":                  {"plugins/arbiter", "plugins/reviewer", "plugins/hostservice"},
	"plugins/builtin/acp":                    {"internal/lazyregexp", "internal/shellword", "plugins/pluginerr", "plugins/provider"},
	"plugins/builtin/claude":                 {"plugins/provider"},
	"plugins/builtin/codex":                  {"internal/lazyregexp", "plugins/pluginerr", "plugins/provider"},
	"plugins/builtin/qwen":                   {"internal/lazyregexp", "plugins/pluginerr", "plugins/provider"},
	"plugins/internal/proto/coven/plugin/v1": {},

	"internal/agent":    {"internal/lazyregexp", "internal/didyoumean", "internal/permission", "internal/regularfile", "internal/yamldoc", "internal/evaluator"},
	"internal/approval": {"internal/control", "internal/event", "internal/exit", "internal/project", "internal/session"},
	"internal/archive":  {"internal/lazyregexp", "grimoires", "internal/event", "internal/spawn", "internal/exit", "internal/project", "internal/regularfile", "internal/session", "internal/shellword", "worktree"},
	"internal/driver":   {"internal/oneline", "internal/clock", "internal/event", "internal/gate", "internal/mcp", "internal/process", "internal/shellword", "plugins/pluginerr", "plugins/provider", "internal/sandbox", "internal/tool"},
	"internal/chat": {
		"internal/lazyregexp",
		"internal/clock", "internal/didyoumean", "internal/driver", "internal/event", "internal/failpoint", "internal/gate", "internal/oneline", "internal/tool",
		"plugins/model", "plugins/pluginerr", "plugins/provider",
	},
	"internal/lazyregexp": {},
	"internal/limits":     {"internal/lazyregexp", "internal/clock", "internal/regularfile", "plugins/provider"},
	"internal/budget":     {"internal/oneline", "internal/yamldoc"},
	"internal/cli": {
		"internal/approval", "internal/cli/reviewpage", "internal/control", "internal/didyoumean", "internal/event", "internal/exit", "internal/findings", "internal/oneline", "internal/project", "internal/registry",
		"internal/scheduler", "internal/session", "internal/shellword", "internal/task", "internal/terminal", "internal/trust", "plugins",
	},
	"internal/cli/approvals": {"internal/approval", "internal/cli", "internal/event", "internal/exit", "internal/project", "internal/shellword", "internal/terminal"},
	"internal/cli/agents": {
		"internal/agenttree", "internal/toolcall",
		"internal/agent", "internal/cli", "internal/config", "internal/evaluator", "internal/exit", "internal/oneline", "internal/permission", "internal/project",
		"internal/shellword", "internal/terminal",
	},
	"internal/cli/attach": {"internal/cli", "internal/control", "internal/session", "internal/terminal"},
	"internal/cli/doctor": {"internal/cli", "internal/doctor", "internal/exit", "internal/oneline", "internal/terminal"},
	"internal/cli/grimoire": {
		"grimoires", "internal/cli", "internal/control", "internal/exit", "internal/oneline", "internal/project", "internal/registry",
		"internal/session", "internal/shellword", "internal/task", "internal/terminal", "plugins", "runner/engine", "runner/workflowtest", "worktree",
	},
	"internal/cli/ground": {
		"internal/cli", "internal/exit", "internal/oneline", "internal/project", "internal/search", "internal/terminal",
	},
	"internal/cli/logs": {"internal/cli", "internal/control", "internal/event", "internal/exit", "internal/session", "internal/terminal"},
	"internal/cli/permissions": {
		"grimoires", "internal/agent", "internal/cli", "internal/config", "internal/didyoumean", "internal/event", "internal/exit", "internal/oneline", "internal/permission",
		"internal/project", "internal/session", "internal/terminal",
	},
	"internal/cli/plugin": {
		"internal/cli", "internal/exit", "internal/oneline", "internal/process", "internal/project", "internal/registry", "internal/scaffold", "internal/shellword",
		"internal/control", "internal/terminal", "plugins", "plugins/builtin", "plugins/model", "plugins/plugintest", "plugins/provider",
	},
	"internal/cli/resume": {
		"internal/budget", "internal/cli", "internal/config", "internal/control", "internal/exit", "internal/project", "internal/scheduler",
		"internal/shellword", "internal/terminal",
	},
	"internal/cli/snapshots": {"internal/cli", "internal/snapshot", "internal/exit", "internal/shellword", "internal/terminal"},
	"internal/cli/sessions":  {"grimoires", "internal/control/conversation", "internal/event", "internal/secret", "internal/archive", "internal/cli", "internal/control", "internal/exit", "internal/project", "internal/session", "internal/shellword", "internal/terminal", "internal/trace"},
	"internal/cli/mcp": {
		"internal/agent", "internal/cli", "internal/control", "internal/didyoumean", "internal/exit", "internal/mcp", "internal/mcp/client", "internal/mcp/servers", "internal/oneline", "internal/outside",
		"internal/project", "internal/terminal",
	},
	"internal/cli/skills":     {"internal/cli", "internal/didyoumean", "internal/exit", "internal/oneline", "internal/project", "internal/skill", "internal/terminal"},
	"internal/cli/tools":      {"internal/cli", "internal/control", "internal/didyoumean", "internal/exit", "internal/oneline", "internal/terminal", "internal/tool", "internal/toolcall"},
	"internal/cli/metrics":    {"internal/cli", "internal/control", "internal/exit", "internal/metrics", "internal/project", "internal/session", "internal/terminal"},
	"internal/cli/chat":       {"internal/cli", "internal/control", "internal/event", "internal/exit", "internal/oneline", "internal/project", "internal/regularfile", "internal/session", "internal/task", "internal/terminal"},
	"internal/cli/spawn":      {"grimoires", "internal/cli", "internal/control", "internal/exit", "internal/mcp", "internal/session", "internal/spawn", "internal/terminal"},
	"internal/cli/rescue":     {"internal/cli", "internal/exit", "internal/project", "internal/rescue", "internal/terminal"},
	"internal/cli/disk":       {"internal/cli", "internal/exit", "internal/storage", "internal/terminal"},
	"internal/cli/review":     {"internal/cli", "internal/control", "internal/exit", "internal/scheduler", "internal/session", "internal/shellword"},
	"internal/cli/reviewpage": {"internal/control", "internal/event", "internal/findings", "internal/oneline", "internal/session", "internal/terminal", "plugins/arbiter", "plugins/reviewer"},
	"internal/cli/root": {
		"internal/cli", "internal/cli/attach", "internal/cli/disk", "internal/cli/doctor", "internal/cli/grimoire", "internal/cli/ground", "internal/cli/logs", "internal/cli/plugin",
		"internal/cli/agents", "internal/cli/approvals", "internal/cli/permissions", "internal/cli/rescue", "internal/cli/resume", "internal/cli/review", "internal/cli/run", "internal/cli/setup", "internal/cli/snapshots", "internal/cli/status", "internal/cli/task",
		"internal/cli/trust", "internal/cli/worktree", "internal/control", "internal/didyoumean", "internal/exit", "internal/mcp", "internal/project", "internal/terminal", "plugins", "internal/evaluator",
		"plugins/builtin/shipped", "internal/cli/spawn", "internal/cli/sessions", "internal/cli/metrics", "internal/cli/chat", "internal/cli/mcp", "internal/cli/skills", "internal/cli/tools",
	},
	"internal/testrun":    {},
	"internal/manual":     {"internal/exit"},
	"internal/manual/man": {"internal/cli/root", "internal/manual"},
	"internal/cli/run": {
		"internal/budget", "internal/cli", "internal/config", "internal/control", "internal/exit", "internal/oneline", "internal/project", "internal/scheduler", "internal/session", "internal/terminal", "plugins",
	},
	"internal/cli/setup": {
		"docs", "grimoires", "internal/cli", "internal/config", "internal/didyoumean", "internal/exit", "internal/lazyregexp", "internal/project", "internal/registry",
		"internal/regularfile", "internal/schema", "internal/secret", "internal/terminal", "internal/tool/command", "runner/workflowtest", "worktree",
	},
	"internal/cli/status":   {"internal/cli", "internal/control", "internal/project", "internal/terminal"},
	"internal/cli/task":     {"internal/cli", "internal/control", "internal/exit", "internal/oneline", "internal/project", "internal/proposal", "internal/task", "internal/terminal"},
	"internal/cli/trust":    {"internal/cli", "internal/control", "internal/exit", "internal/project", "internal/registry", "internal/terminal"},
	"internal/cli/worktree": {"internal/cli", "internal/control", "internal/prune", "internal/terminal"},
	"internal/control": {
		"internal/lazyregexp",
		"internal/agenttree", "internal/agent", "grimoires", "internal/driver", "internal/budget", "internal/config", "internal/notify", "internal/control/agents", "internal/control/commands",
		"internal/control/conversation", "internal/control/reviewers", "internal/control/tracing", "internal/control/workspace", "internal/didyoumean", "internal/event", "internal/exit", "internal/findings", "internal/holder", "internal/mcp/servers",
		"internal/oneline", "internal/process", "internal/project", "internal/regularfile", "internal/secret", "internal/session", "internal/shellword", "internal/task",
		"internal/tempdir", "internal/terminal", "internal/toolversion", "plugins", "plugins/model", "plugins/builtin", "plugins/builtin/scripted", "plugins/reviewer", "runner", "worktree", "internal/sandbox", "internal/egress", "internal/spawn", "internal/telemetry",
	},
	"internal/control/agents": {
		"internal/channel", "internal/tool/message", "internal/agenttree", "grimoires", "internal/forwarder", "internal/chat", "internal/process", "internal/tool/command", "internal/tool/file", "internal/tool/find", "internal/tool/shell", "internal/tool/todo", "internal/tool/web", "plugins/model", "plugins/pluginerr",
		"internal/limits", "internal/driver", "internal/clock", "internal/config", "internal/control/conversation", "internal/control/workspace", "internal/event",
		"internal/exit", "internal/gate", "internal/mcp", "internal/permission", "internal/regularfile", "internal/secret", "internal/session",
		"internal/terminal", "plugins", "plugins/builtin", "plugins/builtin/acp", "plugins/builtin/endpoint", "plugins/provider", "runner", "internal/agent", "internal/budget", "internal/didyoumean", "internal/failpoint", "internal/oneline", "internal/sandbox", "internal/spawn", "internal/tool", "internal/usage", "internal/baseline", "internal/mcp/client", "internal/mcp/servers", "internal/search", "internal/shellword", "worktree", "internal/reflection",
	},
	"internal/control/conversation": {
		"internal/channel", "grimoires", "internal/chat", "internal/event", "internal/exit", "internal/session", "internal/shellword", "plugins", "plugins/model", "plugins/provider", "worktree",
	},
	"internal/control/tracing":  {"internal/project", "internal/session", "internal/telemetry"},
	"internal/control/commands": {"internal/driver", "internal/control/workspace", "internal/process", "runner", "runner/engine"},
	"internal/control/reviewers": {
		"grimoires", "internal/control/workspace", "internal/regularfile", "plugins", "plugins/arbiter", "plugins/hostservice",
		"plugins/pluginerr", "plugins/reviewer", "runner", "worktree",
	},
	"internal/control/workspace": {
		"internal/driver", "internal/clock", "internal/event", "internal/failpoint", "internal/holder", "internal/process", "internal/secret", "internal/session",
		"internal/regularfile", "internal/shellword", "internal/tmpl", "runner", "worktree", "internal/sandbox", "internal/egress", "internal/project",
	},
	"internal/doctor": {
		"internal/config", "internal/control", "internal/exit", "internal/holder", "internal/oneline", "internal/process", "internal/project",
		"internal/registry", "internal/session", "internal/shellword", "internal/task", "internal/tempdir", "internal/terminal",
		"internal/toolversion", "plugins", "plugins/builtin", "plugins/builtin/acp", "plugins/builtin/endpoint", "plugins/pluginerr", "worktree", "internal/sandbox",
	},
	"internal/holder": {"internal/session", "worktree"},
	"internal/project": {
		"internal/agenttree", "internal/embedding", "grimoires", "internal/agent", "internal/driver", "internal/clock", "internal/config", "internal/didyoumean", "internal/evaluator", "internal/exit", "internal/holder", "internal/mcp/servers", "internal/registry",
		"internal/regularfile", "internal/secret", "internal/session", "internal/shellword", "internal/task", "internal/trust", "plugins", "internal/search",
		"plugins/builtin", "plugins/builtin/acp", "worktree", "internal/gate", "internal/skill", "internal/tool/command",
	},
	"internal/sandbox":   {"internal/config", "internal/process"},
	"internal/prune":     {"internal/control", "internal/project", "internal/session", "internal/shellword", "worktree"},
	"internal/search":    {"internal/exit", "internal/regularfile"},
	"internal/baseline":  {"internal/regularfile", "internal/search"},
	"internal/scheduler": {"internal/control", "internal/event", "internal/exit", "internal/project", "internal/session", "internal/task", "worktree"},
	"plugins/builtin":    {"internal/regularfile", "plugins", "plugins/builtin/acp", "plugins/builtin/claude", "plugins/builtin/codex", "plugins/builtin/endpoint", "plugins/builtin/qwen", "plugins/provider"},
	"plugins/builtin/shipped": {
		"plugins", "plugins/builtin", "plugins/builtin/agent", "plugins/builtin/anthropic", "plugins/builtin/command", "plugins/builtin/openai",
		"plugins/builtin/rules", "plugins/builtin/scripted",
	},
	"internal/clock":       {},
	"internal/config":      {"internal/lazyregexp", "internal/permission", "internal/didyoumean", "internal/exit", "internal/shellword", "internal/budget", "internal/regularfile", "internal/schema", "internal/trust", "internal/yamldoc", "internal/egress"},
	"internal/egress":      {},
	"internal/evaluator":   {},
	"internal/exit":        {},
	"internal/failpoint":   {},
	"internal/forwarder":   {"internal/lazyregexp", "internal/failpoint"},
	"internal/event":       {"internal/lazyregexp", "internal/budget", "internal/failpoint", "internal/regularfile", "plugins/arbiter", "plugins/provider", "plugins/reviewer"},
	"internal/fakeapi":     {"internal/shellword"},
	"internal/fakebd":      {},
	"internal/fakeclaude":  {"internal/lazyregexp", "internal/shellword"},
	"internal/fakeacp":     {},
	"internal/fakemcp":     {},
	"internal/fakescreen":  {},
	"internal/findings":    {"internal/lazyregexp", "internal/oneline", "internal/event", "plugins/arbiter", "plugins/reviewer"},
	"internal/gate":        {"internal/event", "internal/permission"},
	"internal/usage":       {"internal/budget", "internal/event"},
	"internal/mcp":         {"internal/gate", "internal/tool"},
	"internal/mcp/client":  {"internal/lazyregexp", "internal/mcp/servers", "internal/tool"},
	"internal/mcp/servers": {"internal/lazyregexp", "internal/didyoumean", "internal/exit", "internal/shellword"},
	"internal/outside":     {"grimoires", "internal/agent", "internal/baseline", "internal/control", "internal/event", "internal/exit", "internal/mcp", "internal/permission", "internal/project", "internal/regularfile", "internal/session", "internal/shellword", "internal/spawn", "internal/tool"},
	"internal/telemetry":   {"internal/oneline", "internal/regularfile", "internal/trace"},
	"internal/notify":      {"internal/config", "internal/event", "internal/oneline", "internal/terminal"},
	"internal/oneline":     {},
	"internal/permission":  {},
	"internal/regularfile": {"internal/exit", "internal/shellword"},
	"internal/process":     {"internal/clock"},
	"internal/registry":    {"internal/lazyregexp", "internal/regularfile", "internal/schema", "internal/didyoumean", "internal/trust", "internal/yamldoc", "plugins", "plugins/provider", "internal/exit", "internal/shellword"},
	"internal/process/early": {
		"internal/process",
	},
	"internal/scaffold": {
		"examples/plugins", "internal/didyoumean", "internal/exit", "internal/registry", "internal/regularfile", "internal/shellword", "plugins", "plugins/proto",
	},
	"internal/schema":       {},
	"internal/tempdir":      {},
	"internal/terminal":     {"internal/event", "internal/findings", "internal/oneline", "plugins/arbiter", "plugins/provider", "plugins/reviewer", "runner", "internal/spawn"},
	"internal/rescue":       {"internal/exit", "internal/project", "internal/shellword", "internal/task", "worktree"},
	"internal/proposal":     {"internal/event", "internal/exit", "internal/project", "internal/session", "internal/shellword", "internal/task", "internal/terminal"},
	"internal/embedding":    {},
	"internal/channel":      {"internal/lazyregexp", "internal/regularfile"},
	"internal/tool/message": {"internal/channel", "internal/tool"},
	"internal/agenttree":    {"grimoires", "internal/agent", "internal/oneline", "internal/tool"},
	"internal/snapshot":     {"internal/control", "internal/exit", "internal/project", "internal/session", "internal/shellword", "worktree"},
	"internal/storage":      {"internal/control", "internal/diskusage", "internal/exit", "internal/project", "internal/sandbox", "internal/session", "internal/shellword", "worktree"},
	"internal/session":      {"internal/lazyregexp", "internal/budget", "internal/failpoint", "internal/event", "internal/findings", "internal/shellword", "internal/usage", "internal/regularfile", "plugins/provider", "plugins/reviewer", "internal/exit", "internal/spawn", "internal/trace", "internal/reflection"},
	"internal/trace":        {},
	"internal/spawn":        {"internal/didyoumean", "internal/permission"},
	"internal/reflection":   {},
	"internal/metrics":      {"internal/budget", "internal/event", "internal/session", "internal/spawn", "internal/usage"},
	"internal/tool":         {"internal/lazyregexp", "internal/didyoumean"},
	"internal/skill":        {"internal/lazyregexp", "internal/regularfile"},
	"internal/tool/command": {"grimoires", "internal/didyoumean", "internal/process", "internal/regularfile", "internal/schema", "internal/shellword", "internal/tmpl", "internal/tool", "internal/tool/shell", "internal/yamldoc"},
	"internal/tool/file":    {"internal/regularfile", "internal/tool"},
	"internal/tool/find":    {"internal/search", "internal/tool"},
	"internal/tool/shell":   {"internal/process", "internal/tool"},
	"internal/tool/todo":    {"internal/event", "internal/tool"},
	"internal/toolcall": {
		"internal/agenttree", "grimoires", "internal/agent", "internal/control", "internal/control/agents", "internal/control/workspace", "internal/didyoumean", "internal/event", "internal/exit", "internal/gate",
		"internal/permission", "internal/process", "internal/project", "internal/sandbox", "internal/search", "internal/shellword", "internal/spawn",
		"internal/tool", "internal/tool/command", "internal/tool/web", "worktree",
	},
	"internal/tool/web":    {"internal/permission", "internal/tool"},
	"internal/secret":      {"internal/lazyregexp", "internal/regularfile", "internal/schema", "internal/didyoumean", "internal/yamldoc"},
	"internal/didyoumean":  {},
	"internal/diskusage":   {},
	"docs":                 {"internal/lazyregexp"},
	"internal/task":        {"internal/lazyregexp", "internal/didyoumean", "internal/exit", "internal/failpoint", "internal/oneline", "internal/regularfile", "internal/shellword"},
	"internal/shellword":   {},
	"internal/toolversion": {"internal/lazyregexp", "internal/oneline", "internal/regularfile"},
	"internal/tmpl":        {"internal/lazyregexp", "internal/didyoumean", "internal/shellword", "internal/exit"},
	"internal/trust":       {"internal/lazyregexp", "internal/regularfile", "internal/exit"},
	"internal/yamldoc":     {"internal/lazyregexp", "internal/didyoumean", "internal/exit", "internal/shellword"},

	"examples/plugins":     {},
	"examples/demo":        {"internal/fakeapi", "internal/fakeclaude", "internal/fakescreen", "internal/shellword"},
	"examples/plugins/zoo": {"plugins", "plugins/arbiter", "plugins/pluginerr", "plugins/model", "plugins/provider", "plugins/reviewer", "plugins/hostservice"},
	// Modules of their own, which see of coven what everybody sees.
	"examples/plugins/arbiter-majority": {"plugins", "plugins/arbiter", "plugins/pluginerr", "plugins/reviewer", "plugins/hostservice"},
	"examples/plugins/provider-runbook": {"plugins", "plugins/pluginerr", "plugins/provider"},
	"examples/plugins/reviewer-govet":   {"plugins", "plugins/pluginerr", "plugins/reviewer", "plugins/hostservice"},
}

// vague are names that say nothing of what is inside.
var vague = []string{"util", "utils", "common", "helper", "helpers", "shared", "types", "models", "core", "base", "manager", "misc"}

func TestImports(t *testing.T) {
	for dir, files := range packages(t) {
		allowed, known := imports[dir]
		if !known {
			t.Errorf("%s has no row in the table of imports", dir)
			continue
		}
		for file, used := range files {
			for _, name := range used {
				if ours, ok := strings.CutPrefix(name, module); ok && !slices.Contains(allowed, ours) {
					t.Errorf("%s imports %s: not in the table of imports", file, ours)
				}
			}
		}
	}
	for dir := range imports {
		if _, err := os.Stat(dir); err != nil {
			t.Errorf("the table of imports names %s, which does not exist", dir)
		}
	}
}

// Only package worktree runs git, and only through its own git package. The demo
// and plugintest make repositories to play with, of their own.
func TestOnlyWorktreeRunsGit(t *testing.T) {
	for dir, files := range packages(t) {
		for file, used := range files {
			if strings.HasPrefix(dir, "worktree") || dir == "examples/demo" || dir == "plugins/plugintest" || !slices.Contains(used, "os/exec") {
				continue
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(text), `Command("git"`) || strings.Contains(string(text), `CommandContext(ctx, "git"`) {
				t.Errorf("%s runs git", file)
			}
		}
	}
}

// The step tree is pure: package engine has no access to files, processes, the
// network, randomness or the time.
func TestEngineIsPure(t *testing.T) {
	forbidden := []string{"os", "os/", "io/fs", "net", "net/", "syscall", "math/rand", "math/rand/", "crypto/rand", "runtime", "unsafe", "golang.org/x/sys/", "path/filepath"}
	checked := 0
	for _, file := range goFiles(t) {
		if path.Dir(file) != "runner/engine" || strings.HasSuffix(file, "_test.go") {
			continue
		}
		checked++
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, spec := range f.Imports {
			name := strings.Trim(spec.Path.Value, `"`)
			if slices.ContainsFunc(forbidden, func(f string) bool { return name == f || strings.HasSuffix(f, "/") && strings.HasPrefix(name, f) }) {
				t.Errorf("%s imports %s", file, name)
			}
			if name == "time" && spec.Name != nil {
				t.Errorf("%s imports time as %s", file, spec.Name)
			}
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok {
				if x, ok := sel.X.(*ast.Ident); ok && x.Name == "time" && !slices.Contains(pureTime, sel.Sel.Name) {
					t.Errorf("%s uses time.%s", file, sel.Sel.Name)
				}
			}
			return true
		})
	}
	if checked == 0 {
		t.Error("runner/engine has no files")
	}
}

// pureTime lists what of package time is only values.
var pureTime = []string{"Duration", "Time", "Nanosecond", "Microsecond", "Millisecond", "Second", "Minute", "Hour"}

// What the runner needs of the world is small: nine interfaces, of at most six
// methods each, nine for the workspace, seven for the landing.
func TestSeamsOfTheRunner(t *testing.T) {
	var names []string
	for _, file := range goFiles(t) {
		if path.Dir(file) != "runner" || strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			if i, ok := spec.Type.(*ast.InterfaceType); ok {
				names = append(names, spec.Name.Name)
				limit := 6
				switch spec.Name.Name {
				case "workspace":
					limit = 9
				case "landing":
					limit = 7
				}
				if n := i.Methods.NumFields(); n > limit {
					t.Errorf("%s has %d methods", spec.Name.Name, n)
				}
			}
			return true
		})
	}
	slices.Sort(names)
	if want := "agents claims commands journal landing reviewers tracker tripwire workspace"; strings.Join(names, " ") != want {
		t.Errorf("the interfaces are %s", names)
	}
}

// Every process of coven pays for what package variables compile, and a task starts many.
func TestStartCompilesNothing(t *testing.T) {
	for _, file := range goFiles(t) {
		if strings.HasSuffix(file, "_test.go") || strings.HasPrefix(file, "examples/") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range f.Decls {
			if variables, ok := decl.(*ast.GenDecl); ok && variables.Tok == token.VAR && calls(variables, "regexp", "MustCompile") {
				t.Errorf("%s compiles a regular expression when coven starts: use lazyregexp.New", file)
			}
		}
	}
}

// Left to itself, renameio looks for a directory for its files with each file that it writes, by writing
// one to the directory for temporary files and moving it.
func TestFilesAreReplacedBesideThem(t *testing.T) {
	for _, file := range goFiles(t) {
		if strings.HasSuffix(file, "_test.go") || strings.HasPrefix(file, "examples/") || file == "internal/regularfile/replace.go" {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		if calls(f, "renameio", "WriteFile") {
			t.Errorf("%s calls renameio.WriteFile: use regularfile.Replace", file)
		}
		if calls(f, "renameio", "NewPendingFile") && !calls(f, "renameio", "WithTempDir") {
			t.Errorf("%s calls renameio.NewPendingFile without WithTempDir", file)
		}
	}
}

// calls reports whether a function of a package is called below n, not counting
// functions that are defined there.
func calls(n ast.Node, pkg, name string) bool {
	found := false
	ast.Inspect(n, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			x, ok := sel.X.(*ast.Ident)
			found = found || ok && x.Name == pkg && sel.Sel.Name == name
		}
		_, function := n.(*ast.FuncLit)
		return !function
	})
	return found
}

func TestPackageComments(t *testing.T) {
	comments := map[string]int{}
	for _, file := range goFiles(t) {
		if strings.HasSuffix(file, "_test.go") || strings.HasSuffix(file, ".pb.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments|parser.PackageClauseOnly)
		if err != nil {
			t.Fatal(err)
		}
		if f.Doc != nil {
			comments[path.Dir(file)]++
		} else {
			comments[path.Dir(file)] += 0
		}
	}
	for dir, n := range comments {
		if n != 1 {
			t.Errorf("%s has %d package comments, want one", dir, n)
		}
	}
}

func TestNames(t *testing.T) {
	for _, file := range goFiles(t) {
		for element := range strings.SplitSeq(strings.TrimSuffix(file, ".go"), "/") {
			if slices.Contains(vague, strings.TrimSuffix(element, "_test")) {
				t.Errorf("%s: %q says nothing of what is inside", file, element)
			}
		}
	}
}

// packages returns our packages with what each of their files imports, tests
// and generated code left out.
func packages(t *testing.T) map[string]map[string][]string {
	t.Helper()
	all := map[string]map[string][]string{}
	for _, file := range goFiles(t) {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		dir := path.Dir(file)
		if all[dir] == nil {
			all[dir] = map[string][]string{}
		}
		used := []string{}
		for _, spec := range f.Imports {
			used = append(used, strings.Trim(spec.Path.Value, `"`))
		}
		all[dir][file] = used
	}
	return all
}

// goFiles returns the Go files of the module, with slashes, below its root.
func goFiles(t *testing.T) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && file != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "bin"):
			return filepath.SkipDir
		case strings.HasSuffix(file, ".go") && strings.Contains(file, "/"):
			files = append(files, filepath.ToSlash(file))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Fatal("no Go files found")
	}
	return files
}
