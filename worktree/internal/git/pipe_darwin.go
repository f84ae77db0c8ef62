package git

// waitsForPipe returns false: macOS does not say what a process waits for.
func waitsForPipe(int) bool { return false }
