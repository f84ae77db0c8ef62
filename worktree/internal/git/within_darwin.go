package git

import "os/exec"

// startWithin starts a command that can change all files: macOS cannot limit one thread.
func startWithin(cmd *exec.Cmd, _ []string) error { return cmd.Start() }
