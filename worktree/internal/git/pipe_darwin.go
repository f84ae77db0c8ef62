package git

// waitsForPipe returns false: macOS does not show where a process is blocked.
func waitsForPipe(int) (waits, known bool) { return false, false }
