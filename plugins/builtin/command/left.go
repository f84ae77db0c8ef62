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

// markEnv is the variable by which what a command started is known again. Its value is
// random for each run.
const markEnv = "COVEN_REVIEW_COMMAND"

func newMark() string { return markEnv + "=" + rand.Text() }

// endLeft kills what a command left behind: its process group, and all that has its
// mark. What forks meanwhile is met the next time round.
func endLeft(group int, mark string) {
	_ = syscall.Kill(-group, syscall.SIGKILL) // ESRCH: nobody is left
	for deadline := time.Now().Add(endTime); killMarked(mark) && time.Now().Before(deadline); {
	}
}

// killMarked kills the processes that have a mark, and says whether there were some. A
// dead one has none.
func killMarked(mark string) bool {
	found := false
	environs, _ := filepath.Glob("/proc/[0-9]*/environ") // elsewhere than on Linux there are none
	for _, environ := range environs {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(environ)))
		if err != nil || pid == os.Getpid() {
			continue
		}
		p, err := os.FindProcess(pid) // before it is looked at: its id may become another's
		if err != nil {
			continue
		}
		text, err := os.ReadFile(environ)
		for variable := range bytes.SplitSeq(text, []byte{0}) {
			if err == nil && string(variable) == mark {
				found = true
				_ = p.Kill() // it has ended: the better
			}
		}
		_ = p.Release() // nothing depends on it
	}
	return found
}
