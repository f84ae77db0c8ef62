// Package services is the former name of package hostservice. It will be removed in
// the release after next.
//
// Deprecated: use hostservice.
package services

import "github.com/coven-run/coven/plugins/hostservice"

// Services is hostservice.Services.
//
// Deprecated: use hostservice.Services.
type Services = hostservice.Services

// Ask is hostservice.Ask.
//
// Deprecated: use hostservice.Ask.
type Ask = hostservice.Ask

// Answer is hostservice.Answer.
//
// Deprecated: use hostservice.Answer.
type Answer = hostservice.Answer

// MostBytes is the largest file or diff that a plugin is given, in bytes.
//
// Deprecated: use hostservice.MaxBytes.
const MostBytes = hostservice.MaxBytes
