package diff

import (
	"context"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/coven-run/coven/internal/file/regularfile"
	"github.com/coven-run/coven/worktree/internal/repo"
)

// FileIn returns the content of a file in a commit. It follows links inside the tree. The error is
// fs.ErrNotExist if there is no such file, regularfile.ErrNotFile if the path leads elsewhere, and a
// *regularfile.SizeError if the file has more than max bytes.
func FileIn(ctx context.Context, r *repo.Repo, commit, path string, max int64) ([]byte, error) {
	answer, err := r.Git().Feed(ctx, []byte(commit+":"+path+"\n"), "cat-file", "--batch-check=%(objecttype) %(objectname) %(objectsize)", "--follow-symlinks")
	if err != nil {
		return nil, fmt.Errorf("look at %s in %s: %w", path, commit, err)
	}
	line, _, _ := strings.Cut(string(answer), "\n")
	if strings.HasSuffix(line, " missing") {
		return nil, fs.ErrNotExist
	}
	fields := strings.Fields(line)
	if len(fields) != 3 || fields[0] != "blob" { // a directory, or a link that leads nowhere, to itself, or out of the tree
		return nil, regularfile.ErrNotFile
	}
	if size, err := strconv.ParseInt(fields[2], 10, 64); err != nil || size > max {
		return nil, &regularfile.SizeError{Max: max}
	}
	content, err := r.Git().Output(ctx, "cat-file", "blob", fields[1])
	if err != nil {
		return nil, fmt.Errorf("read %s in %s: %w", path, commit, err)
	}
	return content, nil
}
