package fakeclaude_test

import (
	"os"
	"testing"
)

// slaveName is the path that the other end was opened by: on macOS the kernel was
// just asked for it.
func slaveName(_ *testing.T, _, slave *os.File) string { return slave.Name() }
