package project

import (
	"context"
	"path/filepath"

	"github.com/coven-run/coven/internal/config"
	"github.com/coven-run/coven/internal/search"
	"github.com/coven-run/coven/internal/search/embedding"
	"github.com/coven-run/coven/worktree"
	"github.com/coven-run/coven/worktree/files"
)

// Search returns an index of the user's checkout.
func (p *Project) Search() *search.Index {
	return p.index(p.Repo.Checkout, func(ctx context.Context) (files.Listing, error) { return files.ListCheckout(ctx, p.Repo) })
}

// SearchIn returns an index of a task's worktree.
func (p *Project) SearchIn(w *worktree.Worktree) *search.Index {
	return p.index(w.Path, func(ctx context.Context) (files.Listing, error) { return files.List(ctx, w) })
}

// SearchSessions returns an index of the records of sessions.
func (p *Project) SearchSessions() *search.Index {
	root := filepath.Join(p.Repo.Root, filepath.FromSlash(search.SessionsDir))
	return search.New(search.Options{
		Root: root, List: search.SessionFiles(root), Optional: true, Cache: p.Env.CacheDir(), Now: p.Env.Now,
	})
}

func (p *Project) index(root string, listing func(context.Context) (files.Listing, error)) *search.Index {
	return search.New(search.Options{Root: root, Cache: p.Env.CacheDir(), Now: p.Env.Now, Similarities: p.similarities(), List: func(ctx context.Context) (search.Listing, error) {
		l, err := listing(ctx)
		return search.Listing(l), err
	}})
}

// similarities returns the function that compares passages by meaning, or nil if it is not configured.
func (p *Project) similarities() func(context.Context, string, []string) ([]float64, error) {
	if p.embeddings == nil {
		return nil
	}
	return p.embeddings.Similarities
}

// embeddings returns the configured endpoint, or nil.
func (e *Environment) embeddings(of config.Embeddings) *embedding.Endpoint {
	if of.URL == "" {
		return nil
	}
	at := &embedding.Endpoint{URL: of.URL, Model: of.Model}
	if of.Key != "" && e.Getenv != nil {
		at.Key = e.Getenv(of.Key)
	}
	return at
}
