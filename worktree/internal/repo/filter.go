package repo

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coven-run/coven/internal/text/shellword"
	"github.com/coven-run/coven/worktree/internal/file"
	"github.com/coven-run/coven/worktree/internal/git"
)

// filterSettings returns settings that run the repository's clean and smudge filters in the main checkout.
// git would run them in the worktree, where the agent can replace programs with relative paths and modules
// of `python -m`. Some keep keys in the git directory, so they get that of the repository.
func (r *Repo) filterSettings(ctx context.Context) ([]git.Setting, error) {
	r.configAtOpen = r.configFiles()
	found, err := r.Git().Configured(ctx, filterKeys, false)
	if err != nil {
		return nil, err
	}
	r.filterCommands = slices.DeleteFunc(found, func(s git.Setting) bool { return s.Value == "" })
	return within(r.filterCommands, "export GIT_DIR="+shellword.Quote(r.GitDir)+"; cd "+shellword.Quote(r.Root)+" && "), nil
}

const filterKeys = `^filter\..*\.(clean|smudge|process)$`

// lfsStorage returns the directory of Git LFS: lfs.storage, which is relative to the git directory.
func (r *Repo) lfsStorage(ctx context.Context) (string, error) {
	settings, err := r.Git().Configured(ctx, `^lfs\.storage$`, false)
	if err != nil {
		return "", err
	}
	dir := "lfs"
	if n := len(settings); n > 0 && settings[n-1].Value != "" {
		dir = settings[n-1].Value
	}
	if filepath.IsAbs(dir) {
		return filepath.Clean(dir), nil
	}
	return filepath.Join(r.GitDir, dir), nil
}

// configFiles returns the text of the repository's configuration, for comparison. An unreadable file counts
// as empty.
func (r *Repo) configFiles() string {
	var all strings.Builder
	for _, name := range []string{"config", "config.worktree"} {
		raw, _ := file.Read(filepath.Join(r.GitDir, name), maxConfig)
		all.Write(raw)
		all.WriteByte(0)
	}
	return all.String()
}

// maxConfig limits the configuration that is compared, in bytes.
const maxConfig = 1 << 20

// currentFilters returns the filter settings. It disables filters that were configured since Open, because
// an agent without a sandbox may have planted them.
func (r *Repo) currentFilters() []git.Setting {
	if r.configFiles() == r.configAtOpen {
		return r.Filters
	}
	found, err := r.Git().Configured(context.Background(), filterKeys, false)
	if err != nil {
		return r.Filters // git cannot read its configuration, so it runs no filter
	}
	settings := slices.Clone(r.Filters)
	for _, s := range found {
		if slices.ContainsFunc(r.filterCommands, func(known git.Setting) bool { return known.Key == s.Key }) {
			continue
		}
		required := s.Key[:strings.LastIndexByte(s.Key, '.')] + ".required"
		settings = append(settings, git.Setting{Key: s.Key}, git.Setting{Key: required, Value: "false"})
	}
	return settings
}

// FiltersFor returns settings that run the filters in a checkout, for a git that writes its new files
// elsewhere.
func (r *Repo) FiltersFor(top string) []git.Setting {
	return within(r.filterCommands,
		"unset GIT_INDEX_FILE; export GIT_WORK_TREE="+shellword.Quote(top)+"; cd "+shellword.Quote(top)+" && ")
}

func within(commands []git.Setting, before string) []git.Setting {
	var settings []git.Setting
	for _, s := range commands {
		settings = append(settings, git.Setting{Key: s.Key, Value: before + s.Value})
	}
	return settings
}
