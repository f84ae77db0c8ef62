package process

// processInfo is one process of a processTable.
type processInfo struct {
	parent, group, session int   // 0 if unknown
	started                int64 // distinguishes processes with the same ID
	zombie                 bool  // dead, but not yet waited for
}

// processTable is the kernel's list of all processes, by process ID.
type processTable map[int]processInfo

// descends reports whether pid is ancestor or descends from it.
func (t processTable) descends(pid, ancestor int) bool {
	for range len(t) { // an inconsistent list may contain cycles
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
