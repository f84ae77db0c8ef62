package evaluator

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/landlock-lsm/go-landlock/landlock"
	"golang.org/x/sys/unix"
)

// restrict permanently limits this process: its processor time, its memory, the size of files that it
// writes, and, if the kernel has Landlock, access to all files and connections.
func restrict(processor time.Duration) error {
	seconds := uint64(processor/time.Second) + 1
	limits := map[int]uint64{unix.RLIMIT_CPU: seconds, unix.RLIMIT_FSIZE: 0, unix.RLIMIT_CORE: 0}
	if data, err := dataSize(); err == nil {
		limits[unix.RLIMIT_DATA] = data + 4*maxMemory // the guard acts earlier
	}
	for which, most := range limits {
		if err := unix.Setrlimit(which, &unix.Rlimit{Cur: most, Max: most}); err != nil {
			return fmt.Errorf("limit the process: %w", err)
		}
	}
	none := landlock.V8.BestEffort()
	return errors.Join(none.RestrictPaths(), none.RestrictNet(), none.RestrictScoped())
}

// dataSize returns the memory of this process that counts for RLIMIT_DATA. The race
// detector allocates much of it at the start.
func dataSize() (uint64, error) {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, err
	}
	var size, resident, shared, code, lib, data uint64
	if _, err := fmt.Fscan(strings.NewReader(string(text)), &size, &resident, &shared, &code, &lib, &data); err != nil {
		return 0, err
	}
	return data * uint64(os.Getpagesize()), nil
}
