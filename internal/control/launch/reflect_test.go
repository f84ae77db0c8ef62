package launch

import (
	"testing"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/agent/spawn"
	"github.com/coven-run/coven/internal/control/workspace"
	"github.com/coven-run/coven/internal/permission"
	"github.com/coven-run/coven/worktree"
)

// The evaluator of a subagent may only read and cannot ask a person. It shares neither the conversation nor the record
// of the agent whose work it judges.
func TestEvaluatorRole(t *testing.T) {
	policy := permission.OfPrimary(t.TempDir(), "painter", nil, nil, nil)
	r := &subagent{
		spawner: &spawner{Launcher: &Launcher{
			Plan:      &grimoires.Plan{Agents: map[string]grimoires.AgentDefinition{"painter": {Prompt: "Paint."}}},
			Workspace: &workspace.Workspace{Worktree: &worktree.Worktree{Repo: &worktree.Repo{Root: t.TempDir()}, TaskID: "p"}},
		}},
		child: spawn.Child{Agent: "painter", Policy: policy, Permissions: policy.Grants()}, provider: "claude", id: "painter-x",
	}
	worker, evaluator := r.worker(), r.evaluator()
	if worker.readOnly || worker.silent || !worker.tools || !worker.subagent {
		t.Errorf("the worker is %+v", worker)
	}
	if !evaluator.readOnly || !evaluator.silent || evaluator.tools || !evaluator.subagent || !evaluator.system.reviews || evaluator.system.own != "" {
		t.Errorf("the evaluator is %+v", evaluator)
	}
	for _, name := range evaluator.Policy.Grants() {
		if name != permission.FileRead && name != permission.CodeSearch {
			t.Errorf("the evaluator has %s", name)
		}
	}
	if evaluator.Path == worker.Path || evaluator.stateDir == worker.stateDir {
		t.Errorf("the evaluator shares %s and %s", evaluator.Path, evaluator.stateDir)
	}
}
