package task

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/coven-run/coven/internal/text/lazyregexp"
)

// TestedVersion is the version of bd with which coven is tested.
const TestedVersion = "1.3.0"

// release is the major, minor and patch number of a version of bd. A nil release is unknown.
type release []int

// proxied is the first release whose databases may have the mode proxied-server. It is the default of bd init there.
var proxied = release{1, 3, 0}

// withdrawn lists the releases of bd that its makers have withdrawn, and the reasons.
var withdrawn = []struct {
	release release
	reason  string
}{
	{release{1, 0, 5}, "its makers have withdrawn it because it corrupts data"},
	{release{1, 1, 1}, "its makers have retracted it"},
	{release{1, 2, 0}, "its makers have retracted it: it was published without tests"},
	{release{1, 2, 1}, "its makers have retracted it: it changes the database to a form that only bd 1.3 and later can read"},
}

var numbers = lazyregexp.New(`^v?(\d+)\.(\d+)(?:\.(\d+))?`)

// parseRelease returns the release that a version such as 1.3.0, v1.3.0 or 1.3.1-rc.2 belongs to.
func parseRelease(version string) release {
	m := numbers.FindStringSubmatch(version)
	if m == nil {
		return nil
	}
	var r release
	for _, digits := range m[1:] {
		n, err := strconv.Atoi(cmp.Or(digits, "0"))
		if err != nil {
			return nil
		}
		r = append(r, n)
	}
	return r
}

var spoken = lazyregexp.New(`\bversion\s+(\S+)`)

// parseVersion returns the version in the output of bd version --json, which very old versions print as text.
func parseVersion(stdout []byte) string {
	var answer struct{ Version string }
	if json.Unmarshal(payload(stdout), &answer) == nil {
		return answer.Version
	}
	if m := spoken.FindStringSubmatch(string(stdout)); m != nil {
		return m[1]
	}
	return ""
}

// checkVersion determines the version of bd before its first command, and returns a *VersionError if coven must not use it.
// A version that cannot be determined is used: checkEmpty detects a program that does not see the tasks. A stored version
// does not refuse the program: its file may only start another one, which has been replaced since.
func (c *CLI) checkVersion(ctx context.Context) error {
	if c.kind != BD || c.checked {
		return c.refused
	}
	if c.version = c.recall(); c.version != "" && refusal(parseRelease(c.version), c.metadata) == "" {
		c.checked = true
		return nil
	}
	out, err := c.execute(ctx, "version", "--json")
	if failed := (*ProgramError)(nil); err != nil && (!errors.As(err, &failed) || failed.ExitCode < 0) {
		return err
	}
	c.checked = true
	if err == nil {
		c.version = parseVersion(out.stdout)
		c.remember(c.version)
	}
	if reason := refusal(parseRelease(c.version), c.metadata); reason != "" {
		c.refused = &VersionError{Program: c.program, Version: c.version, Reason: reason}
	}
	return c.refused
}

// refusal returns why coven does not use a release of bd for a database, or "".
func refusal(r release, m metadata) string {
	for _, w := range withdrawn {
		if slices.Equal(r, w.release) {
			return w.reason
		}
	}
	if r != nil && m.Mode == "proxied-server" && slices.Compare(r, proxied) < 0 {
		return "the database here has the mode proxied-server, which it does not know: it would list no tasks"
	}
	return ""
}

// Version returns the version of the program, or "" if it is unknown, and whether it is older than TestedVersion. It fails
// like any other command of the program.
func (c *CLI) Version(ctx context.Context) (version string, outdated bool, err error) {
	release, err := c.acquire(ctx, "version")
	if err != nil {
		return "", false, err
	}
	defer release()
	err = c.checkVersion(ctx)
	r := parseRelease(c.version)
	return c.version, r != nil && slices.Compare(r, parseRelease(TestedVersion)) < 0, err
}

// Upgrade returns the command that installs the tested version of the program, in the same way as the present one.
func (c *CLI) Upgrade() string { return upgrade(c.program) }

func upgrade(program string) string {
	if real, err := filepath.EvalSymlinks(program); err == nil {
		program = real
	}
	switch {
	case strings.Contains(program, "/Cellar/"):
		return "brew upgrade beads"
	case strings.HasSuffix(program, "/go/bin/bd"):
		return "go install github.com/steveyegge/beads/cmd/bd@v" + TestedVersion
	}
	return "npm install -g @beads/bd@" + TestedVersion
}

// VersionError reports a version of bd that coven does not use.
type VersionError struct {
	Program string // its path
	Version string
	Reason  string
}

func (e *VersionError) Error() string {
	return fmt.Sprintf("%s is bd %s, which coven does not use: %s. No task was read or changed. Install bd %s (%s); if this one is "+
		"still found first on PATH, remove it", e.Program, e.Version, e.Reason, TestedVersion, upgrade(e.Program))
}
