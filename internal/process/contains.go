package process

// Contains reports whether a process belongs to the child's tree: to its PID namespace
// or a nested one, or without a namespace by ancestry. pid is the ID in coven's
// namespace. In case of doubt, and after the tree has ended, it returns false.
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

// inode identifies a namespace while it exists.
type inode struct{ device, number uint64 }
