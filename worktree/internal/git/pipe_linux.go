package git

import (
	"fmt"
	"os"
)

// waitsForPipe reports whether a child is blocked on opening a named pipe without a writer, according to
// the kernel function in which it sleeps. Some kernels do not show it.
func waitsForPipe(pid int) (waits, known bool) {
	at, err := os.ReadFile(fmt.Sprintf("/proc/%d/wchan", pid))
	return string(at) == "wait_for_partner", err == nil && string(at) != "0"
}
