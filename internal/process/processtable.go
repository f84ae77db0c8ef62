package process

// processInfo is one process of a processTable.
type processInfo struct {
	parent, group, session int   // 0: not known
	started                int64 // tells two processes apart that had the same ID
	zombie                 bool  // dead, and not yet waited for
}

// processTable is the kernel's list of all processes, by process ID.
type processTable map[int]processInfo

// descends reports whether a process is another or is below it.
func (t processTable) descends(pid, ancestor int) bool {
	for range len(t) { // a list that was read while processes came and went may go in circles
		if pid == ancestor {
			return true
		}
		info, found := t[pid]
		if !found {
			return false
		}
		pid = info.parent
	}
	return false
}
