// Package proto embeds the plugin protocol as .proto files: the contracts in coven/plugin/v1, and the
// services of go-plugin and gRPC that every plugin serves. They are for plugins in other languages. In Go,
// package plugins implements the protocol.
package proto

import "embed"

// Files holds the .proto files, under the paths by which they import each other.
//
//go:embed goplugin.proto health.proto coven
var Files embed.FS
