package process

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// processes reads the process table.
func processes() (processTable, error) {
	all, err := unix.SysctlKinfoProcSlice("kern.proc.all")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	table := make(processTable, len(all))
	for _, one := range all {
		pid := int(one.Proc.P_pid)
		session, err := unix.Getsid(pid)
		if err != nil {
			session = 0 // a zombie, or it has ended
		}
		table[pid] = processInfo{
			parent: int(one.Eproc.Ppid), group: int(one.Eproc.Pgid), session: session,
			started: one.Proc.P_starttime.Nano(), zombie: one.Proc.P_stat == isZombie,
		}
	}
	return table, nil
}
