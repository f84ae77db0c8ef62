package git

import (
	"bytes"
	"context"
	"os/exec"
	"strings"
)

// A Location is the result of Discover.
type Location struct {
	Top    string // top of the checkout
	Dir    string // the git directory of that checkout
	Shared string // the common git directory of all checkouts
	Format string // "sha1" or "sha256"
	Bare   bool   // there is no checkout, and Top is empty
	Inside bool   // the directory is in a checkout, not in a git directory
}

// Discover asks git for the repository that contains dir. It must not be called on a directory that an
// agent can write. All other functions need the git directory.
func Discover(ctx context.Context, dir string) (Location, error) {
	if at, ok := discoverAtOnce(ctx, dir); ok {
		return at, nil
	}
	kind, err := discover(ctx, dir, "--is-bare-repository", "--is-inside-work-tree", "--show-object-format")
	if err != nil {
		return Location{}, err
	}
	words := append(strings.Fields(kind), "", "", "")
	at := Location{Bare: words[0] == "true", Inside: words[1] == "true", Format: words[2]}
	if at.Dir, err = discover(ctx, dir, "--absolute-git-dir"); err != nil {
		return at, err
	}
	if at.Shared, err = discover(ctx, dir, "--path-format=absolute", "--git-common-dir"); err != nil {
		return at, err
	}
	if at.Inside {
		at.Top, err = discover(ctx, dir, "--show-toplevel")
	}
	return at, err
}

// discoverAtOnce runs git once for all values. It fails if dir is not in a checkout, or if a path contains
// a line feed.
func discoverAtOnce(ctx context.Context, dir string) (Location, bool) {
	answer, err := discover(ctx, dir, "--is-bare-repository", "--is-inside-work-tree", "--show-object-format",
		"--absolute-git-dir", "--path-format=absolute", "--git-common-dir", "--show-toplevel")
	lines := strings.Split(answer, "\n")
	if err != nil || len(lines) != 6 || lines[0] != "false" || lines[1] != "true" {
		return Location{}, false
	}
	return Location{Inside: true, Format: lines[2], Dir: lines[3], Shared: lines[4], Top: lines[5]}, true
}

// discover runs `git rev-parse`, which prints each value on its own line. With several values, the result
// is ambiguous if a path contains a line feed.
func discover(ctx context.Context, dir string, args ...string) (string, error) {
	args = append([]string{"rev-parse"}, args...)
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir, cmd.Env = dir, Repo{}.environ()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := ownProcessGroup(cmd).Run()
	return strings.TrimSuffix(stdout.String(), "\n"), failure(ctx, args, stderr.String(), err)
}
