package session

import (
	"errors"
	"io/fs"
	"path/filepath"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/text/shellword"
)

// CommandExit returns exit.Person.
func (e *DamagedError) CommandExit() int { return exit.Person }

// NextCommand returns the command that may repair the record. A newer record needs a newer coven, as the README builds it.
func (e *DamagedError) NextCommand() string {
	switch {
	case errors.Is(e, event.ErrVersion):
		return "git -C CLONE-OF-COVEN pull && make -C CLONE-OF-COVEN build"
	case errors.Is(e, fs.ErrPermission):
		return "chmod -R u+rwX " + shellword.Word(filepath.Join(Dir, e.Session))
	}
	return "coven doctor --fix"
}
