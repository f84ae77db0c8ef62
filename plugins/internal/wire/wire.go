// Package wire puts the contracts of plugins on the wire: for each a server, which
// runs in the plugin, and a client, which coven holds. It is the only code that
// knows both the Go types and the protobuf ones.
//
// Rules. Texts are made valid UTF-8, which protobuf demands. What a plugin says is
// checked by the client before anybody uses it. Errors cross as package fault
// describes.
package wire

import (
	"math"
	"strings"
)

// maxAnswer is the largest message, in bytes, that a reviewer or an arbiter may
// answer with.
const maxAnswer = 8 << 20

// valid makes a text one that protobuf takes: UTF-8.
func valid(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }

func valids(texts []string) []string {
	var all []string
	for _, text := range texts {
		all = append(all, valid(text))
	}
	return all
}

// options are options as protobuf takes them.
func options(given map[string]string) map[string]string {
	all := make(map[string]string, len(given))
	for k, v := range given {
		all[valid(k)] = valid(v)
	}
	return all
}

// number is n as protobuf has numbers.
func number(n int) int32 { return int32(min(max(n, math.MinInt32), math.MaxInt32)) } //nolint:gosec // bounded
