package git

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/coven-run/coven/worktree/internal/object"
	"github.com/coven-run/coven/worktree/internal/ref"
)

// Refs lists the refs with the given full names or below them, sorted by name.
func (r Repo) Refs(ctx context.Context, under ...string) ([]ref.Ref, error) {
	found, err := inProcess(ctx, r, func(s *object.Store) ([]ref.Ref, error) { return s.Refs(under) })
	if err == nil {
		return found, nil
	}
	args := append([]string{"for-each-ref", "--format=%(objectname) %(refname)", "--"}, under...)
	out, err := r.Output(ctx, args...)
	if err != nil {
		return nil, err
	}
	var refs []ref.Ref
	for line := range strings.Lines(string(out)) {
		oid, name, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		refs = append(refs, ref.Ref{Name: name, Oid: oid})
	}
	return refs, nil
}

// Ref returns the object ID of the ref with this full name, or ErrNoRef. It reads only this ref, unlike
// `git for-each-ref`, which reads the whole directory.
func (r Repo) Ref(ctx context.Context, name string) (string, error) {
	oid, err := inProcess(ctx, r, func(s *object.Store) (string, error) { return s.Ref(name) })
	if err == nil || errors.Is(err, ref.ErrNoRef) {
		return oid, err
	}
	oid, err = r.Line(ctx, "show-ref", "--verify", "--hash", "--", name)
	if err == nil {
		return oid, nil
	}
	failed, ok := errors.AsType[*Error](err)
	if ok && strings.Contains(failed.Stderr, "' - not a valid ref") {
		return "", fmt.Errorf("%s: %w", name, ref.ErrNoRef)
	}
	return r.listed(ctx, name) // the object may be missing
}

// listed is Ref for a ref whose object may be missing.
func (r Repo) listed(ctx context.Context, name string) (string, error) {
	refs, err := r.Refs(ctx, name)
	if err != nil {
		return "", err
	}
	for _, ref := range refs {
		if ref.Name == name {
			return ref.Oid, nil
		}
	}
	return "", fmt.Errorf("%s: %w", name, ref.ErrNoRef)
}
