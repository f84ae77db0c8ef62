package workspace

import (
	"fmt"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/coven-run/coven/internal/sandbox"
	"github.com/coven-run/coven/internal/text/lazyregexp"
)

// fillers lists caches whose files a command of the project installs.
var fillers = map[string]string{
	"ms-playwright": "npx playwright install",
	"Cypress":       "npx cypress install",
	"puppeteer":     "npx puppeteer browsers install",
	"pre-commit":    "pre-commit install-hooks",
}

var absolutePath = lazyregexp.New(`/[^\s'"` + "`" + `:;,()<>\[\]]+`)

// missingInCache explains the failure of a command whose output names a file in a cache that is not there, or returns "".
func (s *Workspace) missingInCache(room *sandbox.Room, output []byte) string {
	for _, found := range absolutePath.FindAllString(string(output), -1) {
		path := filepath.Clean(strings.TrimRight(found, "."))
		missing, ok := room.Missing(path)
		if !ok {
			continue
		}
		const lacks = "the task's cache has no "
		if missing.Offered {
			return fmt.Sprintf("%s%s: set sandbox.caches: [%s] in %s", lacks, missing.File, missing.User, s.Network.ConfigFile)
		}
		if command, known := fillers[filepath.Base(missing.User)]; known {
			return fmt.Sprintf("%s%s: install it in the worktree (worktree.setup: [%q])", lacks, missing.File, command)
		}
	}
	return ""
}

var readOnly = lazyregexp.New(`(?i)read-only file system`)

// writesHome explains the failure of a command whose output says that it could not write a file in the user's home, or
// returns "". The user could have written it.
func (s *Workspace) writesHome(home string, output []byte) string {
	for line := range strings.Lines(string(output)) {
		if !readOnly.MatchString(line) {
			continue
		}
		for _, path := range absolutePath.FindAllString(line, -1) {
			dir := filepath.Dir(strings.TrimRight(path, "."))
			if home == "" || !strings.HasPrefix(dir, home+"/") || unix.Access(dir, unix.W_OK) != nil {
				continue
			}
			why := "the sandbox keeps the command from writing " + path
			if strings.HasPrefix(s.Network.ConfigFile, dir+"/") { // a task must not write coven's own settings
				return why
			}
			return fmt.Sprintf("%s: set sandbox.write: [%s] in %s", why, dir, s.Network.ConfigFile)
		}
	}
	return ""
}
