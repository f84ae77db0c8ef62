package git

import (
	"fmt"
	"os/exec"
	"runtime"

	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// startWithin starts a command that can change only the files in the given directories. Without Landlock's version 2,
// which can allow renames between directories, it can change all files.
func startWithin(cmd *exec.Cmd, dirs []string) error {
	if abi, err := ll.LandlockGetABIVersion(); err != nil || abi < 2 {
		return cmd.Start()
	}
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // forever: the restricted thread ends with the goroutine
		err := restrictThread(dirs)
		if err != nil {
			err = fmt.Errorf("limit the files that git can change: %w", err)
		} else {
			err = cmd.Start() // the child inherits the restriction of the thread
		}
		started <- err
	}()
	return <-started
}

// changes is the set of rights to change files.
const changes = ll.AccessFSWriteFile | ll.AccessFSRemoveDir | ll.AccessFSRemoveFile | ll.AccessFSMakeDir | ll.AccessFSMakeReg |
	ll.AccessFSMakeSock | ll.AccessFSMakeFifo | ll.AccessFSMakeSym | ll.AccessFSRefer

// restrictThread takes the right to change files elsewhere from this thread.
func restrictThread(dirs []string) error {
	rules, err := ll.LandlockCreateRuleset(&ll.RulesetAttr{HandledAccessFS: changes}, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(rules) }()
	for _, dir := range dirs {
		if err := allow(rules, dir, changes); err != nil {
			return err
		}
	}
	if err := allow(rules, "/dev", ll.AccessFSWriteFile); err != nil { // for example /dev/null
		return err
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	return ll.LandlockRestrictSelf(rules, 0)
}

// allow adds an exception for a directory to a rule set.
func allow(rules int, dir string, rights uint64) error {
	at, err := unix.Open(dir, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err == nil {
		defer func() { _ = unix.Close(at) }()
		err = ll.LandlockAddPathBeneathRule(rules, &ll.PathBeneathAttr{AllowedAccess: rights, ParentFd: at}, 0)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", dir, err)
	}
	return nil
}
