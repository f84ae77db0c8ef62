package git

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// ErrNoRef is returned for a ref that does not exist.
var ErrNoRef = errors.New("no such ref")

// A Ref is the full name of a ref and the ID of its object.
type Ref struct{ Name, Oid string }

// Refs lists the refs with the given full names or below them, sorted by name.
func (r Repo) Refs(ctx context.Context, under ...string) ([]Ref, error) {
	found, err := inProcess(ctx, r, func(s *Store) ([]Ref, error) { return s.refsUnder(under) })
	if err == nil {
		return found, nil
	}
	args := append([]string{"for-each-ref", "--format=%(objectname) %(refname)", "--"}, under...)
	out, err := r.Output(ctx, args...)
	if err != nil {
		return nil, err
	}
	var refs []Ref
	for line := range strings.Lines(string(out)) {
		oid, name, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		refs = append(refs, Ref{Name: name, Oid: oid})
	}
	return refs, nil
}

// Ref returns the object ID of the ref with this full name, or ErrNoRef. It reads only this ref, unlike
// `git for-each-ref`, which reads the whole directory.
func (r Repo) Ref(ctx context.Context, name string) (string, error) {
	oid, err := inProcess(ctx, r, func(s *Store) (string, error) { return s.ref(name) })
	if err == nil || errors.Is(err, ErrNoRef) {
		return oid, err
	}
	oid, err = r.Line(ctx, "show-ref", "--verify", "--hash", "--", name)
	if err == nil {
		return oid, nil
	}
	failed, ok := errors.AsType[*Error](err)
	if ok && strings.Contains(failed.Stderr, "' - not a valid ref") {
		return "", fmt.Errorf("%s: %w", name, ErrNoRef)
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
	return "", fmt.Errorf("%s: %w", name, ErrNoRef)
}

// An Edit is one line of a ref transaction.
type Edit struct{ verb, ref, first, second string }

// Ref returns the full name of the edit's ref.
func (e Edit) Ref() string { return e.ref }

// Deletes reports whether the edit removes its ref.
func (e Edit) Deletes() bool { return e.verb == "delete" }

// Values returns the object IDs before and after the edit. They are empty if the ref does not exist. known
// reports whether the edit requires the value before. ok is false if the edit changes nothing.
func (e Edit) Values() (before, after string, known, ok bool) {
	switch e.verb {
	case "create":
		return "", e.first, true, true
	case "update":
		return e.second, e.first, e.second != "", true
	case "delete":
		return e.first, "", e.first != "", true
	}
	return "", "", false, false
}

// Create creates a ref that must not exist.
func Create(ref, oid string) Edit { return Edit{verb: "create", ref: ref, first: oid} }

// Move changes a ref that must point to old.
func Move(ref, to, old string) Edit { return Edit{verb: "update", ref: ref, first: to, second: old} }

// Delete removes a ref that must point to old.
func Delete(ref, old string) Edit { return Edit{verb: "delete", ref: ref, first: old} }

// Set sets a ref to oid unconditionally.
func Set(ref, oid string) Edit { return Edit{verb: "update", ref: ref, first: oid} }

// Drop removes a ref unconditionally, if it exists.
func Drop(ref string) Edit { return Edit{verb: "delete", ref: ref} }

// Verify requires that a ref points to oid.
func Verify(ref, oid string) Edit { return Edit{verb: "verify", ref: ref, first: oid} }
