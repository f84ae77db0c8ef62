package git

import (
	"fmt"
	"os"
)

// waitsForPipe reports whether a child is blocked on opening a named pipe without a writer, according to
// the kernel function in which it sleeps.
func waitsForPipe(pid int) bool {
	at, err := os.ReadFile(fmt.Sprintf("/proc/%d/wchan", pid))
	return err == nil && string(at) == "wait_for_partner"
}
