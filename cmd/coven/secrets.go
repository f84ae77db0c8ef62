package main

import (
	"context"
	"slices"

	"github.com/coven-run/coven/internal/agent"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/secret"
	"github.com/coven-run/coven/worktree"
)

// secrets reads the project's secrets. A file that git would take into a commit
// is not read.
func (h *house) secrets() (*secret.Store, error) {
	if secret.Exists(h.repo.Root) {
		if err := worktree.EnsureCovenDir(h.repo.Root); err != nil {
			return nil, err
		}
		ignored, err := h.repo.Ignores(context.Background(), secret.File)
		if err != nil {
			return nil, err
		}
		if !ignored {
			return nil, exit.Usagef("echo secrets.yaml >> .coven/.gitignore", "%s is not ignored by git: the next commit could publish it", secret.File)
		}
	}
	return secret.Open(h.repo.Root, h.env.getenv)
}

// handedNames are the names of variables that processes are handed besides those that
// every program gets.
func (h *house) handedNames() []string {
	return append(slices.Clone(h.config.Env.Pass), credentials()...)
}

// credentials are the variables in which the agent CLIs that coven knows find theirs.
func credentials() []string {
	return []string{"ANTHROPIC_*", "CLAUDE_CODE_*", "OPENAI_*", "CODEX_*", "QWEN_*"}
}

// hideHanded hides what processes are handed. It returns a warning about what cannot be
// hidden; empty: there is nothing.
func (h *house) hideHanded(store *secret.Store) string {
	short := store.Handed(h.env.environ(), func(name string) bool { return agent.Names(h.handedNames(), name) })
	short = slices.DeleteFunc(short, func(name string) bool { return !slices.Contains(h.config.Env.Pass, name) })
	if len(short) == 0 {
		return ""
	}
	return secret.ShortWarning(short)
}
