package workspace

import (
	"path/filepath"

	"github.com/coven-run/coven/internal/regularfile"
	"github.com/coven-run/coven/worktree/supply"
)

// maxEnvFile bounds a file in which credentials are looked for, in bytes.
const maxEnvFile = 1 << 20

// included hides the credentials in the files that the worktree got from the main checkout, and
// warns once of those that it did not get.
func (s *Workspace) included() error {
	done, err := supply.IncludedFiles(s.Worktree)
	if err != nil {
		return err
	}
	for _, name := range done.Files {
		for _, dir := range []string{s.Worktree.Path, s.Repo.Root} { // either may have changed since
			if text, err := regularfile.ReadIn(dir, filepath.FromSlash(name), maxEnvFile); err == nil {
				s.Secrets.HideEnvFile(string(text))
			}
		}
	}
	if len(done.Warnings) == 0 {
		return nil
	}
	for _, text := range done.Warnings {
		s.warn(text)
	}
	return supply.Announced(s.Worktree, done)
}
