package git

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// waitsForPipe reports whether a child is blocked on opening a named pipe without a writer, according to
// the kernel function in which it sleeps. Some kernels do not show it; then only a child that opens a file may be blocked.
func waitsForPipe(pid int) (waits, known bool) {
	at, err := os.ReadFile(fmt.Sprintf("/proc/%d/wchan", pid))
	if err == nil && string(at) != "0" {
		return string(at) == "wait_for_partner", true
	}
	call, err := os.ReadFile(fmt.Sprintf("/proc/%d/syscall", pid)) // its number, or "running"
	number, _, _ := strings.Cut(string(call), " ")
	const open = "2" // on amd64, with musl
	return false, err == nil && number != open && number != strconv.Itoa(unix.SYS_OPENAT)
}
