package git

// waitsForPipe returns false: macOS does not show where a process is blocked.
func waitsForPipe(int) bool { return false }
