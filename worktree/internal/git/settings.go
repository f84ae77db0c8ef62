package git

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/coven-run/coven/worktree/internal/file"
)

// Configured returns the user's settings whose keys match the regular expression, lowest precedence first,
// without the neutral ones. If asPath is set, values are paths in which ~ is expanded.
func (r Repo) Configured(ctx context.Context, pattern string, asPath bool) ([]Setting, error) {
	r = r.withoutNeutral()
	if found, ok := r.known(ctx, pattern, asPath); ok {
		return found, nil
	}
	args := []string{"config", "-z"}
	if asPath {
		args = append(args, "--type=path")
	}
	fields, err := r.Fields(ctx, append(args, "--get-regexp", pattern)...)
	if failed, ok := errors.AsType[*Error](err); ok && failed.ExitCode == 1 && failed.Stderr == "" {
		return nil, nil // no such key
	}
	if err != nil {
		return nil, err
	}
	var found []Setting
	for _, field := range fields {
		key, value, _ := strings.Cut(field, "\n")
		found = append(found, Setting{Key: key, Value: value})
	}
	return found, nil
}

// Enabled reports whether a boolean setting of the user is true. If it is not set, Enabled returns false.
// If it is not a boolean, Enabled returns an error.
func (r Repo) Enabled(ctx context.Context, key string) (bool, error) {
	r = r.withoutNeutral()
	if found, ok := r.known(ctx, "^"+regexp.QuoteMeta(strings.ToLower(key))+"$", false); ok {
		if len(found) == 0 {
			return false, nil
		}
		switch strings.ToLower(found[len(found)-1].Value) {
		case "true", "yes", "on", "1":
			return true, nil
		case "false", "no", "off", "0":
			return false, nil
		} // git accepts other numbers, and settings without a value
	}
	value, err := r.Line(ctx, "config", "--type=bool", "--get", key)
	if failed, ok := errors.AsType[*Error](err); ok && failed.ExitCode == 1 && failed.Stderr == "" {
		return false, nil
	}
	return value == "true", err
}

func (r Repo) withoutNeutral() Repo {
	r.Settings, r.Env = nil, append(settingsEnv(userSettings(), nil), r.Env...)
	return r
}

// known is Configured in process, with the cached configuration. ok is false if git must be run.
func (r Repo) known(ctx context.Context, pattern string, asPath bool) ([]Setting, bool) {
	if r.Store == nil || r.Store.dir != r.Dir {
		return nil, false
	}
	all, ok := r.Store.config.list(ctx, r)
	if !ok {
		return nil, false
	}
	keys, err := regexp.Compile(pattern)
	if err != nil {
		return nil, false
	}
	var found []Setting
	for _, s := range all {
		if !keys.MatchString(s.Key) {
			continue
		}
		if asPath {
			if s.Value, ok = expand(s.Value); !ok {
				return nil, false
			}
		}
		found = append(found, s)
	}
	return found, true
}

// expand expands ~ in a path. It returns false if git must expand the path.
func expand(value string) (string, bool) {
	switch {
	case value == "", strings.HasPrefix(value, "%("), strings.HasPrefix(value, ":("):
		return "", false
	case strings.HasPrefix(value, "~/"):
		home := os.Getenv("HOME")
		return filepath.Join(home, value[2:]), home != "" && filepath.Clean(value[2:]) == value[2:]
	}
	return value, value[0] != '~'
}

// configList caches git's listing of the configuration until one of its files changes. The zero value is
// empty.
type configList struct {
	mu       sync.Mutex
	settings []Setting
	includes bool                  // the configuration includes files, so that only git can evaluate it
	files    map[string]file.Stamp // state of the files when git read them; nil means that nothing is cached

	now func() time.Time // for tests; nil means time.Now
}

// timestampResolution returns the time within which a file may change again without getting a new modification time.
// Some file systems have timestamps of one or two whole seconds. The clock of other timestamps ticks at
// least a hundred times a second.
func timestampResolution(mtime time.Time) time.Duration {
	if mtime.Nanosecond() == 0 {
		return 2 * time.Second
	}
	return 100 * time.Millisecond
}

// list returns all settings. It fails if the configuration includes other files, which may depend on many
// conditions, or if git fails. It does not cache the settings if a file has just changed.
func (c *configList) list(ctx context.Context, r Repo) ([]Setting, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.files != nil && c.unchanged() {
		return c.settings, !c.includes
	}
	c.settings, c.includes, c.files = nil, false, nil
	files := map[string]file.Stamp{}
	for _, path := range configFiles(r.Dir) {
		files[path] = file.StampOf(path)
	}
	fields, err := r.Fields(ctx, "config", "-z", "--show-origin", "--list")
	if err != nil {
		return nil, false
	}
	settings, includes, ok := parseConfig(fields, files)
	if !ok {
		return nil, false
	}
	now := time.Now()
	if c.now != nil {
		now = c.now()
	}
	for _, s := range files {
		if mtime := s.Modified(); now.Sub(mtime) < timestampResolution(mtime) {
			return settings, !includes // valid now, but not cached
		}
	}
	c.settings, c.includes, c.files = settings, includes, files
	return settings, !includes
}

// parseConfig parses the output of git config --show-origin --list, and adds the files that it names to files. ok is false
// if only git can evaluate a setting.
func parseConfig(fields []string, files map[string]file.Stamp) (settings []Setting, includes, ok bool) {
	for i := 0; i+1 < len(fields); i += 2 {
		path, isFile := strings.CutPrefix(fields[i], "file:")
		key, value, given := strings.Cut(fields[i+1], "\n")
		if !given || isFile && !filepath.IsAbs(path) || !isFile && path != "command line:" {
			return nil, false, false
		}
		if _, known := files[path]; isFile && !known {
			files[path] = file.StampOf(path) // the system's file, or an included one
		}
		includes = includes || strings.HasPrefix(key, "include.") || strings.HasPrefix(key, "includeif.")
		settings = append(settings, Setting{Key: key, Value: value})
	}
	return settings, includes, true
}

func (c *configList) unchanged() bool {
	for path, before := range c.files {
		if file.StampOf(path) != before {
			return false
		}
	}
	return true
}

// configFiles lists the files that git reads for a git directory, whether or not they exist. The system's
// file may be elsewhere; if it exists, git names it.
func configFiles(dir string) []string {
	files := []string{filepath.Join(dir, "config"), filepath.Join(dir, "config.worktree")}
	system := "/etc/gitconfig"
	if other := os.Getenv("GIT_CONFIG_SYSTEM"); other != "" {
		system = other
	}
	files = append(files, system)
	if global, set := os.LookupEnv("GIT_CONFIG_GLOBAL"); set {
		return append(files, global)
	}
	home := os.Getenv("HOME")
	xdg := os.Getenv("XDG_CONFIG_HOME")
	if xdg == "" {
		xdg = filepath.Join(home, ".config")
	}
	return append(files, filepath.Join(home, ".gitconfig"), filepath.Join(xdg, "git", "config"))
}
