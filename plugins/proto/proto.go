// Package proto holds the protocol of plugins as .proto files: the contracts in
// coven/plugin/v1, and the services of go-plugin and gRPC that every plugin serves. They
// are for plugins in other languages; in Go, package plugins implements the protocol.
package proto

import "embed"

// Files holds the .proto files. Their paths are those that they import each other with.
//
//go:embed goplugin.proto health.proto coven
var Files embed.FS
