package doctor

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// sandbox reports what the kernel offers, which coven does not use yet.
func (v *Examination) sandbox(ctx context.Context) []Finding {
	landlock := "no Landlock"
	if abi := landlockABI(); abi > 0 {
		landlock = fmt.Sprintf("Landlock (ABI %d)", abi)
	}
	namespaces := "user namespaces"
	if err := v.userNamespace(ctx); err != nil {
		namespaces = "no user namespaces"
	}
	return warn("", "shell commands are not sandboxed: agents can run anything you can; this machine has %s and %s, which coven does not use yet", landlock, namespaces)
}

// landlockABI returns the version of Landlock; 0: the kernel has none.
func landlockABI() int {
	abi, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(abi)
}

// userNamespace starts coven itself in a user namespace.
func (v *Examination) userNamespace(ctx context.Context) error {
	self, err := v.env.Self()
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
