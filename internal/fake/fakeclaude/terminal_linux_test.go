package fakeclaude_test

import (
	"os"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// slaveName returns the path of a terminal's other end according to the kernel.
func slaveName(t *testing.T, master, _ *os.File) string {
	t.Helper()
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	check(t, err)
	return "/dev/pts/" + strconv.Itoa(number)
}
