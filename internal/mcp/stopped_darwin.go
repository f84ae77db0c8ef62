package mcp

// stopped reports whether a process was stopped by a signal. It is always false on macOS.
func stopped(int) bool { return false }
