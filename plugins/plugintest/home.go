package plugintest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// home is the private directory of one run. It holds sockets, temporary files and a worktree. The plugin's
// processes are recognized by its path in their environment.
type home struct {
	root    string
	sockets string
	tmp     string
	env     []string // additional variables for the plugin
}

// longest limits the length of the directory's parent, in bytes, because the path of a socket has at most
// 107 bytes.
const longest = 48

func newHome(env []string) (*home, error) {
	parent := os.TempDir()
	if len(parent) > longest {
		parent = "/tmp"
	}
	root, err := os.MkdirTemp(parent, "cpt")
	if err != nil {
		return nil, fmt.Errorf("make a directory for the tests: %w", err)
	}
	h := &home{env: env, root: root, sockets: filepath.Join(root, "s"), tmp: filepath.Join(root, "t")}
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

// left returns the names of the remaining sockets.
func (h *home) left() []string {
	var names []string
	entries, _ := os.ReadDir(h.sockets)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// sweep removes the sockets of killed plugins.
func (h *home) sweep() {
	for _, name := range h.left() {
		_ = os.RemoveAll(filepath.Join(h.sockets, name))
	}
}

// socketDir is the variable that names the directory for a plugin's sockets.
const socketDir = "PLUGIN_UNIX_SOCKET_DIR"

// mark returns the variable that marks all processes of the plugin.
func (h *home) mark() string { return "COVEN_PLUGINTEST=" + h.root }

// passed lists the user's variables that a plugin may rely on.
var passed = []string{"PATH", "HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "TZ"}

// environment returns the environment of a plugin.
func (h *home) environment() []string {
	env := append([]string{h.mark(), "TMPDIR=" + h.tmp}, h.env...)
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
