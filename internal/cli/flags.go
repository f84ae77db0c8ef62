package cli

import (
	"github.com/spf13/cobra"

	"github.com/coven-run/coven/worktree"
)

// RemoveFlags are for commands that remove a worktree with ignored files.
func RemoveFlags(cmd *cobra.Command, req *worktree.RemoveRequest) {
	cmd.Flags().BoolVar(&req.KeepBig, "keep-big", false, "store ignored files of any size")
	cmd.Flags().BoolVar(&req.DropIgnored, "drop-ignored", false, "delete ignored files that are too large to store")
}
