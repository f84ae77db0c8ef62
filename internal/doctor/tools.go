package doctor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coven-run/coven/internal/oneline"
	"github.com/coven-run/coven/internal/process"
)

// oldestGit is the oldest git that coven works with.
const oldestGit = "2.38.0" // git merge-tree --write-tree

// toolTime bounds how long a program may take to print its version.
const toolTime = 30 * time.Second

func (v *Examination) git(ctx context.Context) []Finding {
	const next = "apt-get install git"
	said, err := versionOf(ctx, "git")
	if err != nil {
		return fail(next, "%v", err)
	}
	switch older, known := olderThan(said, oldestGit); {
	case !known:
		return warn("git --version", "it does not print its version: %s", said)
	case older:
		return fail(next, "%s is too old: coven needs 2.38 or newer", said)
	}
	return ok("%s", said)
}

// versionOf asks a program for its version.
func versionOf(ctx context.Context, program string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, toolTime)
	defer cancel()
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, program, "--version")
	cmd.Stdout, cmd.WaitDelay = &out, time.Second
	err := cmd.Run()
	if errors.Is(err, exec.ErrNotFound) {
		return "", errors.New("not on PATH")
	}
	if err != nil {
		return "", fmt.Errorf("%s --version: %w", program, err)
	}
	return oneline.Of(out.String()), nil
}

var versionRE = regexp.MustCompile(`\d+(\.\d+)+`)

// olderThan reports whether the version that a program printed is older than least. known
// is false if it printed none.
func olderThan(said, least string) (older, known bool) {
	found := versionRE.FindString(said)
	return slices.Compare(numbers(found), numbers(least)) < 0, found != ""
}

func numbers(version string) []int {
	var all []int
	for part := range strings.SplitSeq(version, ".") {
		n, err := strconv.Atoi(part)
		if err != nil {
			break
		}
		all = append(all, n)
	}
	return all
}

func (v *Examination) processes(context.Context) []Finding {
	self, err := v.env.Self()
	if err != nil {
		return fail("coven version", "find coven's own executable: %v", err)
	}
	launcher, err := process.NewLauncher(self, "exec")
	if err != nil {
		return fail("env -u "+process.ContainmentEnv+" coven doctor", "%v", err)
	}
	held := launcher.Containment()
	if why := launcher.Refused(); why != nil {
		return warn("", "children are contained by a %s, from which a program can escape: PID namespaces are not available (%v)", held, why)
	}
	if held == process.ProcessGroup {
		return warn("", "children are contained by a %s, from which a program can escape", held)
	}
	return ok("children are contained by a %s", held)
}
