package main

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/registry"
	"github.com/coven-run/coven/internal/trust"
	"github.com/coven-run/coven/plugins"
	"github.com/coven-run/coven/worktree"
)

// territory is where the word of those who write the repository is.
func territory(repo *worktree.Repo) (trust.UntrustedPaths, error) {
	checkouts, err := repo.Checkouts()
	if err != nil {
		return trust.UntrustedPaths{}, err
	}
	coven := filepath.Join(repo.Root, ".coven")
	dirs := append(checkouts, repo.Checkout, repo.GitDir, coven, filepath.Join(coven, "worktrees"))
	return trust.NewUntrustedPaths(dirs...), nil
}

// trustStore is what the user trusts of this repository.
func (h *house) trustStore() (*trust.Store, error) {
	where, err := territory(h.repo)
	if err != nil {
		return nil, err
	}
	return h.storeFor(where), nil
}

func (h *house) storeFor(where trust.UntrustedPaths) *trust.Store {
	return trust.New(trust.Options{UserDir: h.env.userDir(), GitDir: h.repo.GitDir, UntrustedPaths: where, Getenv: h.env.getenv, Stop: h.env.stopped})
}

// registry knows the plugins that this repository can have.
func (h *house) registry() (*registry.Registry, error) {
	self, err := h.env.self()
	if err != nil {
		return nil, fmt.Errorf("find coven's own program: %w", err)
	}
	where, err := territory(h.repo)
	if err != nil {
		return nil, err
	}
	o := registry.Options{
		Root: h.repo.Root, UntrustedPaths: where, UserDir: h.env.userDir(), CacheDir: h.env.cacheDir(),
		Path: h.env.getenv("PATH"), Store: h.storeFor(where),
	}
	for kind, served := range builtins() {
		for _, name := range slices.Sorted(maps.Keys(served)) {
			o.Shipped = append(o.Shipped, registry.Shipped{Kind: kind, Name: name, Argv: []string{self, "plugin", string(kind), name}})
		}
	}
	return registry.New(o), nil
}

// needsOf are the plugins that a grimoire can need, with the provider of a run.
func needsOf(g *grimoires.Grimoire, provider string) []plugins.Need {
	needs := []plugins.Need{{Kind: plugins.KindProvider, Name: provider}}
	for s := range g.All() {
		if s.Agent != nil && s.Agent.Provider != "" {
			needs = append(needs, plugins.Need{Kind: plugins.KindProvider, Name: s.Agent.Provider})
		}
		for _, j := range s.Reviewers() {
			needs = append(needs, plugins.Need{Kind: plugins.KindReviewer, Name: j.Plugin})
		}
		if s.AgentLoop != nil {
			needs = append(needs, plugins.Need{Kind: plugins.KindArbiter, Name: s.AgentLoop.Arbiter.Plugin})
		}
	}
	slices.SortFunc(needs, func(a, b plugins.Need) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	return slices.Compact(needs)
}

// needsOfJobs are the plugins that jobs can need. What is wrong with a grimoire is
// said when its job begins.
func (h *house) needsOfJobs(todo []job, grimoire, provider string) []plugins.Need {
	provider = cmp.Or(provider, h.config.Provider)
	needs := needsOf(&grimoires.Grimoire{}, provider)
	for _, j := range todo {
		choice, err := h.grimoireOf(j.task, grimoire)
		if err != nil {
			continue
		}
		g, err := h.library.Load(choice.Grimoire)
		if err != nil {
			continue
		}
		for _, n := range needsOf(g, provider) {
			if !slices.Contains(needs, n) {
				needs = append(needs, n)
			}
		}
	}
	return needs
}

// needsOfSession are the plugins that a session's frozen plan can need.
func needsOfSession(dir string) ([]plugins.Need, error) {
	plan, err := planOf(dir)
	if err != nil {
		return nil, err
	}
	return needsOf(plan.Grimoire, plan.Provider), nil
}

// mayRun says whether plugins may run: it resolves each, and starts none.
func (h *house) mayRun(needs []plugins.Need) error {
	_, err := h.unfit(needs)
	return err
}

// unfit are those of the plugins that a person could trust now, and the reasons
// of all that may not run.
func (h *house) unfit(needs []plugins.Need) ([]registry.Plugin, error) {
	r, err := h.registry()
	if err != nil {
		return nil, err
	}
	var wanting []registry.Plugin
	var reasons []error
	for _, n := range needs {
		_, err := r.Resolve(n.Kind, n.Name)
		if p, ok := trustable(err); ok {
			wanting = append(wanting, p)
		}
		known := func(reason error) bool { return reason.Error() == err.Error() } // a lock is wrong for all of them
		if err != nil && !slices.ContainsFunc(reasons, known) {
			reasons = append(reasons, err)
		}
	}
	return wanting, errors.Join(reasons...)
}

// trustable is the plugin that an error is about, when a person's word would help.
func trustable(err error) (registry.Plugin, bool) {
	if untrusted := (*registry.UntrustedError)(nil); errors.As(err, &untrusted) {
		return untrusted.Plugin, true
	}
	if mismatch := (*registry.MismatchError)(nil); errors.As(err, &mismatch) {
		return mismatch.Plugin, mismatch.Plugin.Project
	}
	return registry.Plugin{}, false
}

// unfit says whether a plugin may not run, and hides none that may.
func unfit(p registry.Plugin) bool { return !p.Runs() && p.State != registry.Hidden }

// called says whether a person means a plugin by a name: that of its file, or its
// own.
func called(p registry.Plugin, name string) bool { return name == p.ID() || name == p.Name }
