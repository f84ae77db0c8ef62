package mcp

// stopped reports whether a process was stopped by a signal. This is not known on macOS.
func stopped(int) bool { return false }
