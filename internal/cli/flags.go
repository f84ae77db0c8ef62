package cli

import (
	"github.com/spf13/cobra"

	"github.com/coven-run/coven/internal/control"
)

// RemoveFlags adds the flags of commands that remove a worktree with ignored files.
func RemoveFlags(cmd *cobra.Command, ignored *control.IgnoredFiles) {
	cmd.Flags().BoolVar(&ignored.Store, "keep-big", false, "store ignored files of any size")
	cmd.Flags().BoolVar(&ignored.Drop, "drop-ignored", false, "delete ignored files that are too large to store")
}
