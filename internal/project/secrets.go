package project

import (
	"context"
	"slices"

	"github.com/coven-run/coven/internal/agent"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/secret"
	"github.com/coven-run/coven/worktree"
)

// Secrets reads the project's secrets. It refuses a file that git does not ignore.
func (p *Project) Secrets() (*secret.Store, error) {
	if secret.Exists(p.Repo.Root) {
		if err := worktree.EnsureCovenDir(p.Repo.Root); err != nil {
			return nil, err
		}
		ignored, err := p.Repo.Ignores(context.Background(), secret.File)
		if err != nil {
			return nil, err
		}
		if !ignored {
			return nil, exit.Usagef("echo secrets.yaml >> .coven/.gitignore", "%s is not ignored by git: the next commit could publish it", secret.File)
		}
	}
	return secret.Open(p.Repo.Root, p.Env.Getenv)
}

// handedNames returns the names of the variables that processes get in addition to those of
// every program.
func (p *Project) handedNames() []string {
	return append(slices.Clone(p.Config.Env.Pass), credentials()...)
}

// credentials returns patterns of the variables in which the supported agent CLIs find
// their credentials.
func credentials() []string {
	return []string{"ANTHROPIC_*", "CLAUDE_CODE_*", "OPENAI_*", "CODEX_*", "QWEN_*"}
}

// HideHandedVariables masks the values of the variables that processes get. It returns a
// warning about values that are too short to mask; empty: there are none.
func (p *Project) HideHandedVariables(store *secret.Store) string {
	short := store.Handed(p.Env.Environ(), func(name string) bool { return agent.Names(p.handedNames(), name) })
	short = slices.DeleteFunc(short, func(name string) bool { return !slices.Contains(p.Config.Env.Pass, name) })
	if len(short) == 0 {
		return ""
	}
	return secret.ShortWarning(short)
}
