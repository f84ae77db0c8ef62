package process

// Contains reports whether a process, by its pid as coven sees it, belongs to
// the child's tree: to its PID namespace or one below, or without a namespace
// by ancestry. In doubt, and once the tree is gone, the answer is no.
func (c *Child) Contains(pid int) bool {
	select {
	case <-c.done:
		return false
	default:
	}
	if pid <= 0 || c.process == nil {
		return false
	}
	if c.mode.containment == ProcessGroup {
		table, err := processes()
		return err == nil && table.descends(pid, c.process.Pid)
	}
	return c.holds(pid)
}

// inode identifies a namespace as long as it lives.
type inode struct{ device, number uint64 }
