package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/coven-run/coven/internal/process"
)

// What coven needs of the programs it runs.
const oldestGit = "2.38.0" // git merge-tree --write-tree

// toolTime bounds how long a program may take to say its version.
const toolTime = 30 * time.Second

func (v *visit) git(ctx context.Context) []finding {
	const next = "apt-get install git"
	said, err := versionOf(ctx, "git")
	if err != nil {
		return bad(next, "%v", err)
	}
	switch older, known := olderThan(said, oldestGit); {
	case !known:
		return odd("git --version", "it does not say its version: %s", said)
	case older:
		return bad(next, "%s is too old: coven needs 2.38 or newer", said)
	}
	return good("%s", said)
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
	return oneLine(out.String()), nil
}

var versionRE = regexp.MustCompile(`\d+(\.\d+)+`)

// olderThan says whether the version in what a program said is older than
// least. It is not known when there is none.
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

func (v *visit) processes(context.Context) []finding {
	self, err := v.app.self()
	if err != nil {
		return bad("coven version", "find coven's own program: %v", err)
	}
	launcher, err := process.NewLauncher(self, "exec")
	if err != nil {
		return bad("env -u "+process.ContainmentEnv+" coven doctor", "%v", err)
	}
	held := launcher.Containment()
	if why := launcher.Refused(); why != nil {
		return odd("", "children are contained by a %s, from which a program can escape: no PID namespace can be had (%v)", held, why)
	}
	return good("children are contained by a %s", held)
}

// sandbox says what there is, and that it is not used yet.
func (v *visit) sandbox(ctx context.Context) []finding {
	landlock := "no Landlock"
	if abi := landlockABI(); abi > 0 {
		landlock = fmt.Sprintf("Landlock (ABI %d)", abi)
	}
	namespaces := "user namespaces"
	if err := v.userNamespace(ctx); err != nil {
		namespaces = "no user namespaces"
	}
	return odd("", "shell commands are not fenced yet: an agent's Bash can reach what you can; this machine has %s and %s, which coven does not use for it", landlock, namespaces)
}

// landlockABI is 0 where the kernel has no Landlock.
func landlockABI() int {
	abi, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(abi)
}

// userNamespace starts coven itself in a user namespace.
func (v *visit) userNamespace(ctx context.Context) error {
	self, err := v.app.self()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, toolTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, self, "version")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}},
	}
	return cmd.Run()
}
