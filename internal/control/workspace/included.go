package workspace

import (
	"path/filepath"

	"github.com/coven-run/coven/internal/file/regularfile"
	"github.com/coven-run/coven/worktree/supply"
)

// maxEnvFile is the maximum size in bytes of a file that is searched for credentials.
const maxEnvFile = 1 << 20

// hideIncludedSecrets hides the credentials in the files that were copied from the main checkout into the worktree,
// and warns once about files that were not copied.
func (s *Workspace) hideIncludedSecrets() error {
	done, err := supply.IncludedFiles(s.Worktree)
	if err != nil {
		return err
	}
	for _, name := range done.Files {
		for _, dir := range []string{s.Worktree.Path, s.Repo.Supplier().Root} { // either may have changed since
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
