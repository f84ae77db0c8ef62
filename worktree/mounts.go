package worktree

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// mountInfo lists the file systems that this process sees, on Linux. See proc_pid_mountinfo(5).
const mountInfo = "/proc/self/mountinfo"

// unmounted returns an error if something is mounted at or below a path: its files are not coven's, and would be
// deleted with the directory.
func unmounted(path string) error {
	text, err := os.ReadFile(mountInfo)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // another system
	}
	if err != nil {
		return fmt.Errorf("look for mounts: %w", err)
	}
	if real, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		path = filepath.Join(real, filepath.Base(path))
	}
	for line := range strings.Lines(string(text)) {
		const place = 4 // its field
		fields := strings.Fields(line)
		if len(fields) <= place {
			continue
		}
		if at := mountPoint(fields[place]); at == path || strings.HasPrefix(at, path+"/") {
			return fmt.Errorf("something is mounted at %s: unmount it first", at)
		}
	}
	return nil
}

// mountPoint returns a path as mountInfo has it, with \040 and the like for some bytes.
func mountPoint(text string) string {
	var out strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+4 <= len(text) {
			if b, err := strconv.ParseUint(text[i+1:i+4], 8, 8); err == nil {
				out.WriteByte(byte(b))
				i += 3
				continue
			}
		}
		out.WriteByte(text[i])
	}
	return out.String()
}
