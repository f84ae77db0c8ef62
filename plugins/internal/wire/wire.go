// Package wire implements the plugin contracts over gRPC. Each contract has a server, which runs in the
// plugin, and a client, which runs in coven. No other code converts between the Go and the protobuf types.
//
// Texts are converted to valid UTF-8, as protobuf requires. Clients validate the answers of plugins. Errors
// are mapped as described in package pluginerr.
package wire

import (
	"math"
	"strings"
)

// maxAnswer is the largest answer of a reviewer or an arbiter, in bytes.
const maxAnswer = 8 << 20

// valid replaces invalid UTF-8, which protobuf rejects.
func valid(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }

func valids(texts []string) []string {
	var all []string
	for _, text := range texts {
		all = append(all, valid(text))
	}
	return all
}

// options copies options and replaces invalid UTF-8.
func options(given map[string]string) map[string]string {
	all := make(map[string]string, len(given))
	for k, v := range given {
		all[valid(k)] = valid(v)
	}
	return all
}

// number converts n to an int32, saturating.
func number(n int) int32 { return int32(min(max(n, math.MinInt32), math.MaxInt32)) } //nolint:gosec // bounded
