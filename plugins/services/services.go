// Package services is the former name of package hostservice. It will be removed in
// the release after next.
//
// Deprecated: use hostservice.
package services

import "github.com/coven-run/coven/plugins/hostservice"

// The types of package hostservice.
//
// Deprecated: use hostservice.
type (
	Services = hostservice.Services
	Ask      = hostservice.Ask
	Answer   = hostservice.Answer
)

// MostBytes is the largest file or diff that a plugin is given, in bytes.
//
// Deprecated: use hostservice.MaxBytes.
const MostBytes = hostservice.MaxBytes
