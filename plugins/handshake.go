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

// maxHandshake is the size limit of a plugin's first line, in bytes. A certificate takes several hundred.
const maxHandshake = 16 << 10

// maxShown is the number of bytes that are quoted from an invalid line.
const maxShown = 200

// checkHandshake validates the handshake line
// "CORE|CONTRACT|NETWORK|ADDRESS|PROTOCOL|CERTIFICATE". speaks lists the supported
// versions of the contract; the socket must be in dir.
func checkHandshake(line string, speaks []int, dir string) error {
	parts := strings.Split(strings.TrimSpace(line), "|")
	if len(parts) < 4 {
		return fmt.Errorf("printed %s instead of a handshake line (is it a coven plugin?): %w", quoteShort(line), pluginerr.ErrInvalid)
	}
	core, err := strconv.Atoi(parts[0])
	contract, err2 := strconv.Atoi(parts[1])
	switch {
	case err != nil, err2 != nil:
		return fmt.Errorf("handshake line %s has no version numbers: %w", quoteShort(line), pluginerr.ErrInvalid)
	case core != goplugin.CoreProtocolVersion:
		return fmt.Errorf("uses version %d of go-plugin's handshake, coven uses version %d: build the plugin with a matching go-plugin: %w",
			core, goplugin.CoreProtocolVersion, pluginerr.ErrUnsupported)
	case !slices.Contains(speaks, contract):
		return fmt.Errorf("uses version %d of the contract, this coven supports %s: %s: %w",
			contract, numbers(speaks), remedy(contract, speaks), pluginerr.ErrUnsupported)
	case len(parts) == 4, parts[4] != string(goplugin.ProtocolGRPC):
		return fmt.Errorf("does not use gRPC, the only supported protocol: handshake line %s: %w", quoteShort(line), pluginerr.ErrUnsupported)
	}
	return checkAddress(parts[2], parts[3], dir)
}

// checkAddress validates the address of a plugin. Only a socket in the plugin's private
// directory is safe from other processes.
func checkAddress(network, address, dir string) error {
	if network != "unix" || filepath.Clean(address) != address || filepath.Dir(address) != dir {
		return fmt.Errorf("handshake names %s address %s, expected a socket in PLUGIN_UNIX_SOCKET_DIR: %w",
			quoteShort(network), quoteShort(address), pluginerr.ErrInvalid)
	}
	info, err := os.Lstat(address)
	if err != nil {
		return fmt.Errorf("socket: %w", err)
	}
	if info.Mode().Type() != fs.ModeSocket {
		return fmt.Errorf("%s is not a socket: %w", quoteShort(address), pluginerr.ErrInvalid)
	}
	return nil
}

// remedy returns advice for a contract version that coven does not support.
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

// quoteShort quotes and truncates output of a plugin.
func quoteShort(text string) string {
	if len(text) > maxShown {
		return strconv.Quote(text[:maxShown]) + "..."
	}
	return strconv.Quote(text)
}
