package sockets

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// OfUser returns the sockets in the file system that this process's user owns and some process has
// bound. A process in a user namespace would not find those with relative paths.
func OfUser() ([]string, error) {
	table, err := os.ReadFile("/proc/net/unix")
	if err != nil {
		return nil, fmt.Errorf("list sockets: %w", err)
	}
	var sockets []string
	for line := range strings.Lines(string(table)) {
		name := socketName(line)
		candidates := []string{name}
		switch {
		case name == "" || name[0] == '@': // not in the file system
			continue
		case !filepath.IsAbs(name):
			candidates = fromWorkingDirs(name)
		}
		for _, path := range candidates {
			if info, err := os.Lstat(path); err == nil && IsOfUser(info) {
				sockets = append(sockets, path)
			}
		}
	}
	return sockets, nil
}

// socketName returns the name of the socket in a line of /proc/net/unix, or "".
func socketName(line string) string {
	for range 7 { // columns before the name
		_, line, _ = strings.Cut(strings.TrimLeft(line, " "), " ")
	}
	return strings.TrimSuffix(line, "\n")
}

// fromWorkingDirs returns the places of a relative path as the processes of the machine see it.
func fromWorkingDirs(name string) []string {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var paths []string
	for _, entry := range entries {
		if _, err := strconv.Atoi(entry.Name()); err != nil {
			continue
		}
		if dir, err := os.Readlink(filepath.Join("/proc", entry.Name(), "cwd")); err == nil {
			paths = append(paths, filepath.Join(dir, name))
		}
	}
	return paths
}

// IsOfUser reports whether a file is a socket that this process's user owns.
func IsOfUser(info os.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && info.Mode()&os.ModeSocket != 0 && int(stat.Uid) == os.Geteuid()
}
