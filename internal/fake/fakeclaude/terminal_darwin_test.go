package fakeclaude_test

import (
	"os"
	"testing"
)

// slaveName returns the path of a terminal's other end. On macOS it was opened by the path
// from the kernel.
func slaveName(_ *testing.T, _, slave *os.File) string { return slave.Name() }
