package regularfile

import (
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/text/shellword"
)

// CommandExit returns exit.Usage.
func (e *LinkError) CommandExit() int { return exit.Usage }

// NextCommand returns the command that moves the obstacle away.
func (e *LinkError) NextCommand() string {
	if e.To == "" {
		return "mv " + shellword.Word(e.Path) + " " + shellword.Word(e.Path+".moved")
	}
	return "rm " + shellword.Word(e.Path)
}
