package project

import (
	"context"
	"slices"

	"github.com/coven-run/coven/internal/driver"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/secret"
	"github.com/coven-run/coven/worktree"
)

// Secrets reads the project's secrets. It fails if git does not ignore their file.
func (p *Project) Secrets() (*secret.Store, error) {
	if secret.Exists(p.definitions().Root) {
		if err := worktree.EnsureCovenDir(p.definitions().Root); err != nil {
			return nil, err
		}
		ignored, err := p.definitions().Ignores(context.Background(), secret.File)
		if err != nil {
			return nil, err
		}
		if !ignored {
			return nil, exit.Usagef("echo secrets.yaml >> .coven/.gitignore", "%s is not ignored by git: the next commit could publish it", secret.File)
		}
	}
	return secret.Open(p.definitions().Root, p.Env.Getenv)
}

// passedNames returns the names of the variables that processes inherit in addition to the default
// ones.
func (p *Project) passedNames() []string {
	return append(slices.Clone(p.Config.Env.Pass), credentials()...)
}

// credentials returns the names of the variables that hold credentials of agent CLIs.
func credentials() []string {
	return []string{"ANTHROPIC_*", "CLAUDE_CODE_*", "OPENAI_*", "CODEX_*", "QWEN_*"}
}

// HideVariables hides the values of the inherited variables in records. It returns a
// warning about values that cannot be hidden, or "".
func (p *Project) HideVariables(store *secret.Store) string {
	short := store.HideEnv(p.Env.Environ(), func(name string) bool { return driver.Names(p.passedNames(), name) })
	short = slices.DeleteFunc(short, func(name string) bool { return !slices.Contains(p.Config.Env.Pass, name) })
	if len(short) == 0 {
		return ""
	}
	return secret.ShortWarning(short)
}
