package task

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/coven-run/coven/internal/text/oneline"
)

// databases are the directories below .beads in which versions of bd store the tasks, by the mode in its metadata.
var databases = map[string][]string{
	"embedded":       {"embeddeddolt"},
	"server":         {"dolt"},
	"proxied-server": {"dolt", "proxieddb"},
}

// checkEmpty returns an *EmptyError if the program lists no task at all although the .beads directory has some: a bd that
// does not find the database creates an empty one and succeeds.
func (c *CLI) checkEmpty(ctx context.Context) error {
	if c.kind != BD || c.populated.Load() {
		return nil
	}
	found := c.elsewhere(ctx)
	if found == "" {
		return nil
	}
	out, err := c.run(ctx, "list", "--all", "--json", "-n", "0")
	if err != nil {
		return err
	}
	if all, err := out.tasks(); err != nil || len(all) > 0 {
		return err
	}
	return &EmptyError{Program: c.program, Dir: c.beads, Found: found}
}

// elsewhere returns where the .beads directory has tasks that are not in the program's database, or "".
func (c *CLI) elsewhere(ctx context.Context) string {
	if name, err := c.metadata.fileIn(c.beads); err == nil {
		exported, err := OpenFile(filepath.Join(c.beads, name), "").List(ctx)
		if err == nil && len(exported) > 0 {
			return fmt.Sprintf("its %s has %s", name, oneline.Count(len(exported), "task"))
		}
	}
	own, known := databases[c.metadata.Mode]
	for _, other := range []string{"embeddeddolt", "dolt", "proxieddb"} {
		stored, err := filepath.Glob(filepath.Join(c.beads, other, "*", ".dolt"))
		if known && !slices.Contains(own, other) && err == nil && len(stored) > 0 {
			return fmt.Sprintf("its directory %s has another database, of another mode or version of bd", other)
		}
	}
	return ""
}

// EmptyError reports that bd lists no task although its directory has some.
type EmptyError struct {
	Program string // its path
	Dir     string // the .beads directory
	Found   string // what the directory has
}

func (e *EmptyError) Error() string {
	return fmt.Sprintf("%s lists no task of %s, but %s. Find out which database it reads (bd where), then import the file (bd import) "+
		"or use the bd that made the other database; if no task is missing, move the file or directory away", e.Program, e.Dir, e.Found)
}
