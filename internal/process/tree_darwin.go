package process

import "golang.org/x/sys/unix"

// treeBelow returns the tree below this process. main is its main process.
func treeBelow(_ Containment, main int) tree { return followFamily(main) }

// States of a process, from macOS's proc.h.
const (
	isZombie  = 5      // SZOMB
	isExiting = 0x2000 // P_WEXIT
)

// exiting reports whether a child of this process is dead or exiting.
func exiting(child int) bool {
	info, err := unix.SysctlKinfoProc("kern.proc.pid", child)
	return err != nil || info.Proc.P_stat == isZombie || info.Proc.P_flag&isExiting != 0
}
