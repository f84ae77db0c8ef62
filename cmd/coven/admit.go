package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/coven-run/coven/internal/registry"
	"github.com/coven-run/coven/internal/trust"
)

// builtIns are the plugins that shipped has.
func builtIns() []registry.Need {
	return []registry.Need{{Kind: registry.KindProvider, Name: "claude"}}
}

// cacheDir is where coven keeps what can be made again; empty when nobody says
// whose it is.
func (a *app) cacheDir() string {
	if dir := a.getenv("XDG_CACHE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "coven")
	}
	if home := a.getenv("HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, ".cache", "coven")
	}
	return ""
}

// territory is where the word of those who write the repository is.
func (h *house) territory() (trust.Territory, error) {
	checkouts, err := h.repo.Checkouts()
	if err != nil {
		return trust.Territory{}, err
	}
	coven := filepath.Join(h.repo.Root, ".coven")
	dirs := append(checkouts, h.repo.Checkout, h.repo.GitDir, coven, filepath.Join(coven, "worktrees"))
	return trust.NewTerritory(dirs...), nil
}

// trustStore is what the user trusts of this repository.
func (h *house) trustStore() (*trust.Store, error) {
	where, err := h.territory()
	if err != nil {
		return nil, err
	}
	return h.storeFor(where), nil
}

func (h *house) storeFor(where trust.Territory) *trust.Store {
	return trust.New(trust.Options{UserDir: h.app.userDir(), GitDir: h.repo.GitDir, Territory: where, Getenv: h.app.getenv})
}

// registry knows the plugins that this repository can have.
func (h *house) registry() (*registry.Registry, error) {
	self, err := h.app.self()
	if err != nil {
		return nil, fmt.Errorf("find coven's own program: %w", err)
	}
	where, err := h.territory()
	if err != nil {
		return nil, err
	}
	o := registry.Options{
		Root: h.repo.Root, Territory: where, UserDir: h.app.userDir(), CacheDir: h.app.cacheDir(),
		Path: h.app.getenv("PATH"), Store: h.storeFor(where),
	}
	for _, b := range builtIns() {
		o.Shipped = append(o.Shipped, registry.Shipped{Kind: b.Kind, Name: b.Name, Argv: []string{self, "plugin", b.Kind, b.Name}})
	}
	return registry.New(o), nil
}

// providerNeed is the provider of a run: the one that was given, or else that of
// the configuration.
func (h *house) providerNeed(given string) []registry.Need {
	return []registry.Need{{Kind: registry.KindProvider, Name: cmp.Or(given, h.config.Provider)}}
}

// mayRun says whether plugins may run: it resolves each, and starts none.
func (h *house) mayRun(needs []registry.Need) error {
	_, err := h.unfit(needs)
	return err
}

// unfit are those of the plugins that a person could trust now, and the reasons
// of all that may not run.
func (h *house) unfit(needs []registry.Need) ([]registry.Plugin, error) {
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
		if err != nil {
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

// admitPlugins says whether plugins may run. On a terminal it asks about those
// that only need a person's trust.
func (h *house) admitPlugins(ctx context.Context, needs []registry.Need) error {
	wanting, err := h.unfit(needs)
	if err == nil || len(wanting) == 0 || !h.app.interactive {
		return err
	}
	trusted, askErr := h.askTrust(ctx, wanting, false)
	if askErr != nil {
		return askErr
	}
	if !trusted {
		return err
	}
	return h.mayRun(needs)
}

// aboutTrust says whether an error is about what may run.
func aboutTrust(err error) bool {
	return errors.As(err, new(*registry.UntrustedError)) || errors.As(err, new(*registry.MismatchError)) ||
		errors.As(err, new(*registry.BrokenError)) || errors.As(err, new(*registry.CacheError)) || errors.As(err, new(*trust.Error))
}

// trustHint says what to do about such an error.
func trustHint(err error) string {
	store, broken, mismatch := (*trust.Error)(nil), (*registry.BrokenError)(nil), (*registry.MismatchError)(nil)
	_, open := trustable(err)
	switch {
	case open:
		return "coven trust"
	case errors.As(err, &mismatch):
		return nextPlugin(mismatch.Plugin)
	case errors.As(err, &broken):
		return nextPlugin(broken.Plugin)
	case errors.As(err, &store):
		return store.Next
	}
	return "export XDG_CACHE_HOME=DIR, a directory of yours outside of the repository"
}
