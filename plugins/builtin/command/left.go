package command

import (
	"bytes"
	"crypto/rand"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// markEnv is the variable that identifies the processes of a command. Its value is random for each run.
const markEnv = "COVEN_REVIEW_COMMAND"

func newMark() string { return markEnv + "=" + rand.Text() }

// endLeft kills the processes that a command left behind: its process group and all processes with its
// mark. It repeats until no process is found, because a process may fork at the same time.
func endLeft(group int, mark string) {
	_ = syscall.Kill(-group, syscall.SIGKILL) // ESRCH means that no process is left
	for deadline := time.Now().Add(endTime); killMarked(mark) && time.Now().Before(deadline); {
	}
}

// killMarked kills the processes with a mark. It reports whether there were any.
func killMarked(mark string) bool {
	found := false
	environs, _ := filepath.Glob("/proc/[0-9]*/environ") // Linux only
	for _, environ := range environs {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(environ)))
		if err != nil || pid == os.Getpid() {
			continue
		}
		p, err := os.FindProcess(pid) // before reading environ, because the ID may be reused
		if err != nil {
			continue
		}
		text, err := os.ReadFile(environ)
		for variable := range bytes.SplitSeq(text, []byte{0}) {
			if err == nil && string(variable) == mark {
				found = true
				_ = p.Kill() // it may have exited
			}
		}
		_ = p.Release() // the result does not matter
	}
	return found
}
