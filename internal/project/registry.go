package project

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/config"
	"github.com/coven-run/coven/internal/pluginregistry"
	"github.com/coven-run/coven/internal/project/trust"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/plugins"
	"github.com/coven-run/coven/plugins/builtin"
	"github.com/coven-run/coven/worktree"
)

// untrustedPaths returns the paths that are writable by authors of the repository.
func untrustedPaths(repo *worktree.Repo) (trust.UntrustedPaths, error) {
	checkouts, err := repo.Checkouts()
	if err != nil {
		return trust.UntrustedPaths{}, err
	}
	coven := filepath.Join(repo.Root, ".coven")
	dirs := append(checkouts, repo.Checkout, repo.GitDir, coven)
	dirs = append(dirs, repo.WorktreeDirs()...)
	return trust.NewUntrustedPaths(dirs...), nil
}

// TrustStore returns the store of the user's trust decisions for this repository.
func (p *Project) TrustStore() (*trust.Store, error) {
	where, err := untrustedPaths(p.definitions())
	if err != nil {
		return nil, err
	}
	return p.storeFor(where), nil
}

func (p *Project) storeFor(where trust.UntrustedPaths) *trust.Store {
	return trust.New(trust.Options{UserDir: p.Env.UserDir(), GitDir: p.definitions().GitDir, UntrustedPaths: where, Getenv: p.Env.Getenv, Stop: p.Env.Stopped})
}

// Registry returns the plugins that are available in this repository. Outside of a repository, these are
// the user's and the built-in ones.
func (p *Project) Registry() (*pluginregistry.Registry, error) {
	self, err := p.Env.Self()
	if err != nil {
		return nil, fmt.Errorf("find coven's own executable: %w", err)
	}
	o := pluginregistry.Options{UserDir: p.Env.UserDir(), CacheDir: p.Env.CacheDir(), Path: p.Env.Getenv("PATH")}
	if p.Repo != nil {
		if o.UntrustedPaths, err = untrustedPaths(p.definitions()); err != nil {
			return nil, err
		}
		o.Root, o.Store = p.definitions().Root, p.storeFor(o.UntrustedPaths)
	}
	for kind, names := range builtin.Names() {
		for _, name := range names {
			shipped := pluginregistry.Shipped{Kind: kind, Name: name, Argv: []string{self, "plugin", string(kind), name}}
			if kind == plugins.KindProvider {
				shipped.Capabilities = builtin.Capabilities(name)
			}
			o.Shipped = append(o.Shipped, shipped)
		}
	}
	return pluginregistry.New(o), nil
}

// IsBuiltin reports whether a needed plugin resolves to the built-in one rather than another with the
// same name.
func (p *Project) IsBuiltin(need plugins.Need) bool {
	known, err := p.Registry()
	if err != nil {
		return false
	}
	found, err := known.Find(need.Kind, need.Name)
	return err == nil && found.State == pluginregistry.BuiltIn
}

// ProviderUses returns the providers that this repository uses in addition to the default one, each
// with one user: a readable grimoire, or a task whose session in views can continue.
func (p *Project) ProviderUses(views []session.View) map[string]string {
	uses := map[string]string{}
	add := func(g *grimoires.Grimoire, standard, user string) {
		for _, name := range g.Providers(standard) {
			if uses[name] == "" && name != p.Config.Provider {
				uses[name] = user
			}
		}
	}
	for _, v := range views {
		if !v.Live() {
			continue
		}
		if plan, err := PlanOf(v.Dir); err == nil {
			add(plan.Grimoire, plan.Provider, "task "+v.Task)
		}
	}
	names, _ := p.Library.Names() // invalid ones are reported when they are used
	for _, name := range names {
		if g, err := p.Library.Load(name); err == nil {
			add(g, p.Config.Provider, "grimoire "+name)
		}
	}
	return uses
}

// NeedsOf returns the plugins that a grimoire may need, with the provider of a run.
func NeedsOf(g *grimoires.Grimoire, provider string) []plugins.Need {
	needs := []plugins.Need{plugins.NeedOf(provider)}
	for s := range g.All() {
		for _, used := range s.Plugins() {
			need := plugins.Need{Kind: plugins.Kind(used.Kind), Name: used.Name}
			if need.Kind == plugins.KindProvider {
				need = plugins.NeedOf(used.Name)
			}
			needs = append(needs, need)
		}
	}
	slices.SortFunc(needs, func(a, b plugins.Need) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	return slices.Compact(needs)
}

// NeedsOfItems returns the plugins that tasks may need. It ignores invalid grimoires, which
// are reported when the task starts.
func (p *Project) NeedsOfItems(todo []Item, grimoire, provider string) []plugins.Need {
	provider = cmp.Or(provider, p.Config.Provider)
	needs := NeedsOf(&grimoires.Grimoire{}, provider)
	for _, item := range todo {
		choice, err := p.GrimoireOf(item.Task, grimoire)
		if err != nil {
			continue
		}
		g, err := p.Library.Load(choice.Grimoire)
		if err != nil {
			continue
		}
		for _, n := range NeedsOf(g, provider) {
			if !slices.Contains(needs, n) {
				needs = append(needs, n)
			}
		}
	}
	return needs
}

// NeedsOfSession returns the plugins that a session's frozen plan may need.
func NeedsOfSession(dir string) ([]plugins.Need, error) {
	plan, err := PlanOf(dir)
	if err != nil {
		return nil, err
	}
	return NeedsOf(plan.Grimoire, plan.Provider), nil
}

// CheckPlugins returns an error if one of the plugins may not run. It starts no plugin.
func (p *Project) CheckPlugins(needs []plugins.Need) error {
	_, err := p.UntrustedPlugins(needs)
	return err
}

// UntrustedPlugins returns the plugins that the user could trust. The error contains the reasons
// for all plugins that may not run.
func (p *Project) UntrustedPlugins(needs []plugins.Need) ([]pluginregistry.Plugin, error) {
	r, err := p.Registry()
	if err != nil {
		return nil, err
	}
	var untrusted []pluginregistry.Plugin
	var reasons []error
	lockIsWrong := false
	for _, n := range needs {
		_, err := r.Resolve(n.Kind, n.Name)
		if plugin, ok := trustable(err); ok {
			untrusted = append(untrusted, plugin)
		}
		if errors.As(err, new(config.Errors)) {
			if lockIsWrong {
				continue // already reported
			}
			lockIsWrong = true
		}
		if err != nil {
			reasons = append(reasons, err)
		}
	}
	return untrusted, errors.Join(reasons...)
}

// trustable returns the plugin of an error if the user could trust it.
func trustable(err error) (pluginregistry.Plugin, bool) {
	if untrusted := (*pluginregistry.UntrustedError)(nil); errors.As(err, &untrusted) {
		return untrusted.Plugin, true
	}
	if mismatch := (*pluginregistry.MismatchError)(nil); errors.As(err, &mismatch) {
		return mismatch.Plugin, mismatch.Plugin.Project
	}
	return pluginregistry.Plugin{}, false
}

// CannotRun reports whether a plugin may not run and is not overridden by another one.
func CannotRun(p pluginregistry.Plugin) bool { return !p.Runs() && p.State != pluginregistry.Hidden }

// HasName reports whether name is the ID or the name of a plugin.
func HasName(p pluginregistry.Plugin, name string) bool { return name == p.ID() || name == p.Name }
