package plugintest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// home is the private directory of one run: sockets, temporary files, a worktree.
// It is the mark of the plugin's processes, too: their environment names it.
type home struct {
	root    string
	sockets string
	tmp     string
}

// longest is the longest directory, in bytes, that leaves room for a socket below
// it: the path of a socket has at most 107.
const longest = 48

func newHome() (*home, error) {
	parent := os.TempDir()
	if len(parent) > longest {
		parent = "/tmp"
	}
	root, err := os.MkdirTemp(parent, "cpt")
	if err != nil {
		return nil, fmt.Errorf("make a directory for the tests: %w", err)
	}
	h := &home{root: root, sockets: filepath.Join(root, "s"), tmp: filepath.Join(root, "t")}
	for _, dir := range []string{h.sockets, h.tmp} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			return nil, fmt.Errorf("make a directory for the tests: %w", err)
		}
	}
	return h, nil
}

func (h *home) close() error {
	if err := os.RemoveAll(h.root); err != nil {
		return fmt.Errorf("clean up after the tests: %w", err)
	}
	return nil
}

// left are the sockets that are still there.
func (h *home) left() []string {
	var names []string
	entries, _ := os.ReadDir(h.sockets)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// sweep removes the sockets of plugins that were killed.
func (h *home) sweep() {
	for _, name := range h.left() {
		_ = os.RemoveAll(filepath.Join(h.sockets, name))
	}
}

// socketDir is the variable that tells a plugin where its sockets belong.
const socketDir = "PLUGIN_UNIX_SOCKET_DIR"

// mark is what the environment of each of the plugin's processes holds.
func (h *home) mark() string { return "COVEN_PLUGINTEST=" + h.root }

// passed are the variables that a plugin may rely on, if the user has them.
var passed = []string{"PATH", "HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "TZ"}

// environment is what a plugin finds: little of the user's own.
func (h *home) environment() []string {
	env := []string{h.mark(), "TMPDIR=" + h.tmp}
	for _, kv := range os.Environ() {
		name, _, _ := strings.Cut(kv, "=")
		for _, known := range passed {
			if name == known {
				env = append(env, kv)
			}
		}
		if strings.HasPrefix(name, "LC_") || strings.HasPrefix(name, "XDG_") {
			env = append(env, kv)
		}
	}
	return env
}
