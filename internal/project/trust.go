package project

import (
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/pluginregistry"
	"github.com/coven-run/coven/internal/project/trust"
	"github.com/coven-run/coven/internal/text/shellword"
	"github.com/coven-run/coven/plugins"
	"github.com/coven-run/coven/worktree"
)

// TrustOffer lists the items of a repository that the user could trust.
type TrustOffer struct {
	Plugins  []pluginregistry.Plugin
	Requests []Request
	// Mismatched lists plugins that do not match the lock and cannot be trusted this way:
	// they do not belong to the project, or the user would not see them first.
	Mismatched []pluginregistry.Plugin
}

// IsEmpty reports whether the offer contains nothing.
func (o TrustOffer) IsEmpty() bool {
	return len(o.Plugins) == 0 && len(o.Requests) == 0 && len(o.Mismatched) == 0
}

// TrustOffer returns everything that the repository asks the user to trust, or only the named
// items. unseen means that the user will not review the offer.
func (p *Project) TrustOffer(names []string, unseen bool) (TrustOffer, error) {
	variables, rest, err := p.UntrustedRequests(names)
	if err != nil {
		return TrustOffer{}, err
	}
	all, err := p.namedPlugins(names, rest)
	if err != nil {
		return TrustOffer{}, err
	}
	offer := TrustOffer{Requests: variables}
	for _, plugin := range all {
		switch {
		case plugin.State == pluginregistry.Mismatch && (!plugin.Project || unseen && len(names) == 0):
			offer.Mismatched = append(offer.Mismatched, plugin)
		case plugin.State == pluginregistry.Untrusted, plugin.State == pluginregistry.Changed, plugin.State == pluginregistry.Mismatch:
			offer.Plugins = append(offer.Plugins, plugin)
		}
	}
	return offer, nil
}

// namedPlugins returns the named plugins, or all if there are no names. rest has
// the names that match no request.
func (p *Project) namedPlugins(names, rest []string) ([]pluginregistry.Plugin, error) {
	if len(names) > 0 && len(rest) == 0 {
		return nil, nil
	}
	r, err := p.Registry()
	if err != nil {
		return nil, err
	}
	all, err := r.List()
	if err != nil || len(names) == 0 {
		return all, err
	}
	var found []pluginregistry.Plugin
	for _, name := range rest {
		named, err := pluginsNamed(all, name)
		if err != nil {
			return nil, err
		}
		found = append(found, named...)
	}
	return found, nil
}

// pluginsNamed returns the plugins with a name, except hidden ones. An ambiguous name is an
// error. Built-in plugins need no trust and do not make a name ambiguous.
func pluginsNamed(all []pluginregistry.Plugin, name string) ([]pluginregistry.Plugin, error) {
	var found []pluginregistry.Plugin
	var ids []string
	for _, plugin := range all {
		if plugin.State == pluginregistry.Hidden || !HasName(plugin, name) {
			continue
		}
		found = append(found, plugin)
		if plugin.State != pluginregistry.BuiltIn {
			ids = append(ids, plugin.ID())
		}
	}
	switch {
	case len(found) == 0:
		return nil, exit.Failedf("coven plugins list", "there is no plugin %q", name)
	case len(ids) > 1:
		return nil, exit.Usagef("coven trust "+shellword.Word(ids[0]), "%q is the name of %d plugins: %s", name, len(ids), strings.Join(ids, ", "))
	}
	return found, nil
}

// MismatchError returns the error for a plugin that does not match the lock. Such a plugin must be
// trusted by name.
func MismatchError(plugin pluginregistry.Plugin) error {
	next := plugin.NextCommand()
	if plugin.Project {
		next = "coven trust --yes " + shellword.Word(plugin.ID())
	}
	return &exit.Error{Exit: exit.Usage, Err: &pluginregistry.MismatchError{Plugin: plugin}, Next: next}
}

// TrustRequests grants requests that the user has seen.
func (p *Project) TrustRequests(shown []Request) error {
	if len(shown) == 0 {
		return nil
	}
	store, err := p.TrustStore()
	if err != nil {
		return err
	}
	var items []trust.Item
	for _, r := range shown {
		items = append(items, r.Item(p.now()))
	}
	return store.Add(items...)
}

// TrustPlugins trusts plugins that the user has seen.
func (p *Project) TrustPlugins(shown []pluginregistry.Plugin) error {
	store, err := p.TrustStore()
	if err != nil {
		return err
	}
	var items []trust.Item
	for _, plugin := range shown {
		items = append(items, trust.Item{
			Kind: trust.KindPlugin, Name: plugin.ID(), What: p.Near(plugin.File), SHA256: plugin.SHA256, Since: p.now(),
		})
	}
	return store.Add(items...)
}

// now returns the time for the trust store.
func (p *Project) now() time.Time { return p.Env.Now().UTC().Truncate(time.Second) }

// PinPlugins writes the hashes of trusted plugins to the repository's lock. It reports
// whether the lock has changed.
func (p *Project) PinPlugins(shown []pluginregistry.Plugin) (changed bool, err error) {
	store, err := p.TrustStore()
	if err != nil {
		return false, err
	}
	if err := worktree.EnsureCovenDir(p.Repo.Root); err != nil {
		return false, err
	}
	return pluginregistry.Pin(p.Repo.Root, store, shown, runtime.GOOS+"/"+runtime.GOARCH)
}

// RevokeTrust removes the named items from the trust store, or all items of this repository
// if there are no names. It returns the removed items and the names that matched none.
func (p *Project) RevokeTrust(names []string) (removed []trust.Item, unknown []string, err error) {
	store, err := p.TrustStore()
	if err != nil {
		return nil, nil, err
	}
	removed, err = store.Remove(func(it trust.Item) bool {
		return len(names) == 0 || slices.ContainsFunc(names, func(name string) bool { return isNamed(it, name) })
	})
	if err != nil {
		return nil, nil, err
	}
	for _, name := range names {
		if !slices.ContainsFunc(removed, func(it trust.Item) bool { return isNamed(it, name) }) {
			unknown = append(unknown, name)
		}
	}
	return removed, unknown, nil
}

// isNamed reports whether name refers to a trusted item: a plugin by its ID or
// name, a secret by its grimoire or its variable.
func isNamed(it trust.Item, name string) bool {
	switch {
	case it.Name == name:
		return true
	case it.Kind == trust.KindSecret:
		return strings.HasPrefix(it.Name, name+":") || strings.HasPrefix(it.What, "$"+name+":")
	}
	return it.Kind == trust.KindPlugin && slices.ContainsFunc(plugins.Kinds(), func(kind plugins.Kind) bool {
		return it.Name == pluginregistry.Plugin{Kind: kind, Name: name}.ID()
	})
}
