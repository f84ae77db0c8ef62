package plugins

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	goplugin "github.com/hashicorp/go-plugin"

	"github.com/coven-run/coven/plugins/pluginerr"
)

// maxHandshake bounds a plugin's first line, in bytes. A certificate takes some
// hundred of them.
const maxHandshake = 16 << 10

// maxShown is how much of a wrong first line is shown, in bytes.
const maxShown = 200

// checkHandshake says what is wrong about the first line that a plugin printed,
// "CORE|CONTRACT|NETWORK|ADDRESS|PROTOCOL|CERTIFICATE", when this side speaks
// those versions of the contract and sockets may be in dir.
func checkHandshake(line string, speaks []int, dir string) error {
	parts := strings.Split(strings.TrimSpace(line), "|")
	if len(parts) < 4 {
		return fmt.Errorf("it printed %s where its greeting must be (is it a plugin of coven?): %w", quoteShort(line), pluginerr.ErrInvalid)
	}
	core, err := strconv.Atoi(parts[0])
	contract, err2 := strconv.Atoi(parts[1])
	switch {
	case err != nil, err2 != nil:
		return fmt.Errorf("its greeting %s names no versions: %w", quoteShort(line), pluginerr.ErrInvalid)
	case core != goplugin.CoreProtocolVersion:
		return fmt.Errorf("it greets as version %d of go-plugin's handshake has it, coven speaks version %d: build it with a go-plugin of that version: %w",
			core, goplugin.CoreProtocolVersion, pluginerr.ErrUnsupported)
	case !slices.Contains(speaks, contract):
		return fmt.Errorf("it speaks version %d of its contract, this coven speaks %s: %s: %w",
			contract, numbers(speaks), remedy(contract, speaks), pluginerr.ErrUnsupported)
	case len(parts) == 4, parts[4] != string(goplugin.ProtocolGRPC):
		return fmt.Errorf("it does not speak gRPC, as its greeting %s says, and coven speaks nothing else: %w", quoteShort(line), pluginerr.ErrUnsupported)
	}
	return checkAddress(parts[2], parts[3], dir)
}

// checkAddress says why a plugin may not be reached at an address: only a socket
// in its own directory can be nobody else's.
func checkAddress(network, address, dir string) error {
	if network != "unix" || filepath.Clean(address) != address || filepath.Dir(address) != dir {
		return fmt.Errorf("it names %s address %s, only a socket in its own directory (PLUGIN_UNIX_SOCKET_DIR) is taken: %w",
			quoteShort(network), quoteShort(address), pluginerr.ErrInvalid)
	}
	info, err := os.Lstat(address)
	if err != nil {
		return fmt.Errorf("its socket: %w", err)
	}
	if info.Mode().Type() != fs.ModeSocket {
		return fmt.Errorf("%s is no socket: %w", quoteShort(address), pluginerr.ErrInvalid)
	}
	return nil
}

// remedy says what to do when no version is common.
func remedy(theirs int, ours []int) string {
	if theirs > slices.Max(ours) {
		return "update coven, or build the plugin for this coven"
	}
	return "update the plugin"
}

func numbers(list []int) string {
	var words []string
	for _, n := range slices.Sorted(slices.Values(list)) {
		words = append(words, strconv.Itoa(n))
	}
	return strings.Join(words, ", ")
}

// quoteShort is what a plugin said, escaped and not too long.
func quoteShort(text string) string {
	if len(text) > maxShown {
		return strconv.Quote(text[:maxShown]) + "..."
	}
	return strconv.Quote(text)
}
