package project

import (
	"errors"

	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/text/shellword"
	"github.com/coven-run/coven/worktree/rescue"
)

// DropIgnoredFirst adds the next command to an error about ignored files that are too large
// to store.
func DropIgnoredFirst(id string, err error) error {
	if big := (*rescue.IgnoredError)(nil); errors.As(err, &big) {
		return exit.Personf("coven worktree remove --drop-ignored "+shellword.Word(id), "%w", err)
	}
	return err
}

// AskAboutIgnored adds the flags that resolve an error about ignored files.
func AskAboutIgnored(err error) error {
	if big := (*rescue.IgnoredError)(nil); errors.As(err, &big) {
		return exit.Personf("add --keep-big to store these files, or --drop-ignored to delete them", "%w", err)
	}
	return err
}
