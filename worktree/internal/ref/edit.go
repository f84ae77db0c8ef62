// Package ref describes changes of refs: the edits of a transaction, and the log of the transactions that coven
// has made.
package ref

import "errors"

// ErrNoRef is returned for a ref that does not exist.
var ErrNoRef = errors.New("no such ref")

// A Ref is the full name of a ref and the ID of its object.
type Ref struct{ Name, Oid string }

// An Edit is one line of a ref transaction.
type Edit struct{ verb, ref, first, second string }

// Ref returns the full name of the edit's ref.
func (e Edit) Ref() string { return e.ref }

// Command returns the edit in the input format of `git update-ref -z`.
func (e Edit) Command() string {
	command := e.verb + " " + e.ref + "\x00" + e.first + "\x00"
	if e.verb == "update" {
		command += e.second + "\x00"
	}
	return command
}

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
