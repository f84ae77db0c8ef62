package evaluator

import (
	"fmt"
	"syscall"
	"time"
)

// restrict permanently limits this process: its processor time, and the size of files that it writes. Only the guard
// limits its memory.
func restrict(processor time.Duration) error {
	seconds := uint64(processor/time.Second) + 1
	for which, most := range map[int]uint64{syscall.RLIMIT_CPU: seconds, syscall.RLIMIT_FSIZE: 0, syscall.RLIMIT_CORE: 0} {
		if err := syscall.Setrlimit(which, &syscall.Rlimit{Cur: most, Max: most}); err != nil {
			return fmt.Errorf("limit the process: %w", err)
		}
	}
	return nil
}
