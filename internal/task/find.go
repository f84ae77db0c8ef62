package task

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/coven-run/coven/internal/file/regularfile"
)

const (
	directory   = ".beads"
	defaultFile = "issues.jsonl"
	oldFile     = "beads.jsonl" // written by the first versions of beads

	maxSetting = 1 << 20 // bytes of a settings file
)

// findDirectory returns the .beads directory for a user in dir, a directory in a checkout
// of the repository with the given main checkout: $BEADS_DIR, or else
// the nearest .beads from dir up to the top of the checkout, or else the main
// checkout's .beads. In a linked worktree, it is the directory at the same
// place in the main checkout instead of the worktree's copy. It need not exist.
func findDirectory(dir, mainCheckout string, getenv func(string) string) (string, error) {
	if set := getenv("BEADS_DIR"); set != "" {
		if !filepath.IsAbs(set) {
			set = filepath.Join(dir, set)
		}
		return filepath.Abs(set)
	}
	top, within, err := nearest(dir)
	if err != nil {
		return "", err
	}
	home, err := filepath.Abs(mainCheckout)
	if err != nil {
		return "", err
	}
	if at := filepath.Join(home, within, directory); top != "" && isDirectory(at) {
		return at, nil
	}
	return filepath.Join(home, directory), nil
}

// nearest finds the nearest directory with a .beads, from dir upward. It returns the top
// of the checkout and the path within it. Both are empty if there is none.
func nearest(dir string) (top, within string, err error) {
	dir, err = filepath.EvalSymlinks(dir)
	if err != nil {
		return "", "", err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return "", "", err
	}
	found := ""
	for at := dir; ; at = filepath.Dir(at) {
		if found == "" && isDirectory(filepath.Join(at, directory)) {
			found = at
		}
		if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil {
			top = at
			break
		}
		if at == filepath.Dir(at) {
			break
		}
	}
	if top == "" || found == "" {
		return "", "", nil
	}
	within, err = filepath.Rel(top, found)
	return top, within, err
}

func isDirectory(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func checkRedirect(beads string) error {
	to, err := regularfile.Read(filepath.Join(beads, "redirect"), maxSetting)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("find tasks: %s/redirect: %w", beads, err)
	}
	if line := strings.TrimSpace(string(to)); line != "" {
		return &RedirectError{Dir: beads, To: line}
	}
	return nil
}

// metadata is the description of the storage by beads.
type metadata struct {
	Backend  string `json:"backend"`
	Database string `json:"database"`
	Export   string `json:"jsonl_export"`
	Mode     string `json:"dolt_mode"` // embedded, server or proxied-server
}

// backend returns the backend, such as dolt or sqlite, or "" if it is not specified.
func (m metadata) backend() string { return cmp.Or(m.Backend, databaseKind(m.Database)) }

// readable reports whether a JSONL file also contains the tasks.
func (m metadata) readable() bool {
	switch m.backend() {
	case "", "sqlite", "jsonl":
		return true
	}
	return false
}

// fileIn returns the name of the JSONL file.
func (m metadata) fileIn(beads string) (string, error) {
	if m.Export != "" {
		if filepath.Base(m.Export) != m.Export || filepath.Ext(m.Export) != ".jsonl" {
			return "", fmt.Errorf("find tasks: %s: jsonl_export is not the name of a .jsonl file: %q", filepath.Join(beads, "metadata.json"), m.Export)
		}
		return m.Export, nil
	}
	if !exists(filepath.Join(beads, defaultFile)) && exists(filepath.Join(beads, oldFile)) {
		return oldFile, nil
	}
	return defaultFile, nil
}

// databaseKind returns dolt if the name of the database implies it.
func databaseKind(database string) string {
	if database == "dolt" {
		return database
	}
	return ""
}

func readMetadata(beads string) (metadata, error) {
	path := filepath.Join(beads, "metadata.json")
	data, err := regularfile.Read(path, maxSetting)
	if errors.Is(err, fs.ErrNotExist) {
		if isDirectory(filepath.Join(beads, "embeddeddolt")) || isDirectory(filepath.Join(beads, "dolt")) {
			return metadata{Backend: "dolt"}, nil
		}
		return metadata{}, nil
	}
	if err != nil {
		return metadata{}, fmt.Errorf("find tasks: %s: %w", path, err)
	}
	var m metadata
	if err := json.Unmarshal(data, &m); err != nil {
		return m, fmt.Errorf("find tasks: %s says where beads keeps the tasks, and cannot be read: %w", path, err)
	}
	return m, nil
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
