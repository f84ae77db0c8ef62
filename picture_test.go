package coven_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

// The picture in docs/architecture.md is generated from the imports by
// UPDATE=1 go test -run TestPicture .
const (
	picturePage  = "docs/architecture.md"
	pictureBegin = "<!-- Drawn by UPDATE=1 go test -run TestPicture . -->\n```mermaid\n"
	pictureEnd   = "```\n"
)

// box is a node of the picture: one or several packages.
type box struct {
	name     string
	packages []string // paths, or patterns of path.Match
}

// boxes lists the nodes from top to bottom: none imports one above it. A package with its exact name in a
// box belongs to that box, even if it matches patterns of others.
var boxes = []box{
	{"main", []string{"cmd/coven"}},
	{"root", []string{"internal/cli/root"}},
	{"commands", []string{"internal/cli/*"}},
	{"cli", []string{"internal/cli", "internal/cli/reviewpage"}},
	{"screen", []string{"internal/tui"}},
	{"page", []string{"internal/web"}},
	{"board", []string{"internal/board"}},
	{"scheduler", []string{"internal/control/scheduler"}},
	{"doctor", []string{"internal/control/archive", "internal/doctor", "internal/control/metrics", "internal/control/storage", "internal/control/approval", "internal/control/proposal", "internal/control/prune", "internal/control/rescue", "internal/control/snapshot", "internal/control/outside", "internal/control/review", "internal/control/toolcall", "internal/control/replay", "internal/control/backtest"}},
	{"control", []string{"internal/control"}},
	{"adapters", []string{"internal/control/*"}},
	{"project", []string{"internal/project"}},
	{"workflowtest", []string{"runner/workflowtest"}},
	{"plugintest", []string{"plugins/plugintest"}},
	{"notify", []string{"internal/telemetry/notify", "internal/telemetry"}},
	{"terminal", []string{"internal/terminal", "internal/terminal/notice"}},
	{"runner", []string{"runner", "runner/continuation", "runner/elsewhere", "runner/evidence", "runner/rehearsal", "runner/pullrequest"}},
	{"engine", []string{"runner/engine"}},
	{"agent", []string{"internal/agent", "internal/agent/agenttree"}},
	{"evaluator", []string{"internal/agent/evaluator"}},
	{"chat", []string{"internal/driver/chat"}},
	{"driver", []string{"internal/driver"}},
	{"gate", []string{"internal/mcp", "internal/gate"}},
	{"mcp", []string{"internal/mcp/client"}},
	{"tools", []string{"internal/tool/*"}},
	{"sandbox", []string{"internal/sandbox"}},
	{"process", []string{"internal/process", "internal/process/early", "internal/process/timelimit"}},
	{"holder", []string{"internal/task/holder"}},
	{"worktree", []string{"worktree", "worktree/checkout", "worktree/claim", "worktree/commit", "worktree/diff", "worktree/files", "worktree/integrate", "worktree/isolation", "worktree/land", "worktree/live", "worktree/notes", "worktree/pool", "worktree/predict", "worktree/remote", "worktree/rescue", "worktree/scratch", "worktree/snapshot", "worktree/supply", "worktree/tripwire", "worktree/internal/cone", "worktree/internal/content", "worktree/internal/covendir", "worktree/internal/file", "worktree/internal/git", "worktree/internal/lock", "worktree/internal/names", "worktree/internal/object", "worktree/internal/protected", "worktree/internal/ref", "worktree/internal/repo", "worktree/internal/sparse", "worktree/internal/submodule", "worktree/internal/suspect"}},
	{"session", []string{"internal/session", "internal/session/spending", "internal/session/backup", "internal/session/collision", "internal/session/away"}},
	{"search", []string{"internal/search", "internal/tool/baseline"}},
	{"attestation", []string{"internal/attestation"}},
	{"record", []string{"internal/agent/channel", "internal/event", "internal/event/findings", "internal/session/usage"}},
	{"limits", []string{"internal/budget/limits"}},
	{"forwarder", []string{"internal/sandbox/forwarder"}},
	{"task", []string{"internal/task"}},
	{"config", []string{"internal/config", "internal/config/detect", "internal/config/convert"}},
	{"egress", []string{"internal/sandbox/egress"}},
	{"scaffold", []string{"internal/project/scaffold", "plugins/proto", "examples/plugins"}},
	{"registry", []string{"internal/pluginregistry"}},
	{"trust", []string{"internal/project/trust"}},
	{"secret", []string{"internal/secret"}},
	{"grimoires", []string{"grimoires"}},
	{"builtin", []string{"plugins/builtin", "plugins/builtin/*"}},
	{"plugins", []string{"plugins", "plugins/model", "plugins/internal/wire", "plugins/internal/proto/coven/plugin/v1"}},
	{"contracts", []string{"plugins/provider", "plugins/reviewer", "plugins/arbiter", "plugins/forge", "plugins/hostservice", "plugins/pluginerr"}},
	{"tool", []string{"internal/tool"}},
	{"permission", []string{"internal/agent/spawn", "internal/permission", "internal/agent/reflection"}},
	{"text", []string{"internal/budget", "internal/mcp/servers", "internal/text/tmpl", "internal/config/yamldoc"}},
	{"leaves", []string{
		"docs",
		"internal/process/clock", "internal/text/didyoumean", "internal/text/dashed", "internal/text/ending", "internal/file/diskusage", "internal/search/embedding", "internal/exit", "internal/process/failpoint", "internal/text/lazyregexp", "internal/text/oneline", "internal/file/regularfile",
		"internal/config/schema", "internal/text/glob", "internal/text/shellword", "internal/text/strictjson", "internal/text/jsonline", "internal/agent/skill", "internal/file/tempdir", "internal/doctor/programversion", "internal/session/trace", "runner/agentresult", "runner/workclock", "internal/config/check", "internal/process/checklock", "internal/process/loopback", "internal/process/relay", "internal/process/overlay", "internal/process/keyring", "internal/process/memoryfile", "internal/process/reads", "internal/process/sockets",
	}},
}

// undrawn lists packages that no part of coven imports: fakes, examples and tools.
var undrawn = []string{"distributed/...", "examples/*", "examples/plugins/*", "internal/fake/...", "internal/manual", "internal/manual/man", "internal/manual/site", "internal/testrun"}

func TestPicture(t *testing.T) {
	text, err := os.ReadFile(picturePage)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), pictureBegin)
	old, after, closed := strings.Cut(rest, pictureEnd)
	if !found || !closed {
		t.Fatalf("%s has no picture: it begins with\n%s", picturePage, pictureBegin)
	}
	picture := draw(t)
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(picturePage, []byte(before+pictureBegin+picture+pictureEnd+after), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if old != picture {
		t.Errorf("the picture in %s does not show the imports: UPDATE=1 go test -run TestPicture .", picturePage)
	}
}

// draw returns the boxes and their arrows in Mermaid. It omits an arrow if a longer path leads to the same
// box.
func draw(t *testing.T) string {
	t.Helper()
	arrows := arrowsOf(t)
	var picture strings.Builder
	picture.WriteString("flowchart TD\n")
	for _, b := range boxes {
		fmt.Fprintf(&picture, "  %s[\"%s\"]\n", b.name, strings.Join(b.packages, "<br>"))
	}
	for _, b := range boxes {
		var direct []string
		for _, to := range arrows[b.name] {
			if !slices.ContainsFunc(arrows[b.name], func(other string) bool { return other != to && leads(arrows, other, to) }) {
				direct = append(direct, to)
			}
		}
		if len(direct) > 0 {
			fmt.Fprintf(&picture, "  %s --> %s\n", b.name, strings.Join(direct, " & "))
		}
	}
	return picture.String()
}

// leads reports whether a path of arrows leads from one box to another.
func leads(arrows map[string][]string, from, to string) bool {
	return slices.ContainsFunc(arrows[from], func(next string) bool { return next == to || leads(arrows, next, to) })
}

// arrowsOf returns the boxes that each box imports, from top to bottom.
func arrowsOf(t *testing.T) map[string][]string {
	t.Helper()
	members := map[int]int{}
	imported := map[string]map[int]bool{}
	used := imports(t)
	for _, from := range slices.Sorted(maps.Keys(used)) {
		if within(undrawn, from) {
			continue
		}
		at := boxOf(t, from)
		members[at]++
		for _, to := range used[from] {
			below := boxOf(t, to)
			if below < at {
				t.Fatalf("%s (box %s) imports %s (box %s), which is above it", from, boxes[at].name, to, boxes[below].name)
			}
			if below > at {
				if imported[boxes[at].name] == nil {
					imported[boxes[at].name] = map[int]bool{}
				}
				imported[boxes[at].name][below] = true
			}
		}
	}
	arrows := map[string][]string{}
	for i, b := range boxes {
		if members[i] == 0 {
			t.Errorf("no package is in the box %s", b.name)
		}
		for _, to := range slices.Sorted(maps.Keys(imported[b.name])) {
			arrows[b.name] = append(arrows[b.name], boxes[to].name)
		}
	}
	return arrows
}

// boxOf returns the index of a package's box.
func boxOf(t *testing.T, pkg string) int {
	t.Helper()
	for i, b := range boxes {
		if slices.Contains(b.packages, pkg) {
			return i
		}
	}
	for i, b := range boxes {
		if within(b.packages, pkg) {
			return i
		}
	}
	t.Fatalf("%s has no box in the picture: add it to boxes or undrawn", pkg)
	return 0
}
