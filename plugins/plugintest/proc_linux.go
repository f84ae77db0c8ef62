package plugintest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// apart starts the command in its own process group and kills it when this process ends.
func apart(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// endGroup kills a process and its process group.
func endGroup(cmd *exec.Cmd) {
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	_ = cmd.Process.Kill()
}

// marked returns the running processes with the mark in their environment.
func marked(mark string) ([]int, error) {
	files, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("list processes: there is no /proc: %w", errors.Join(err, errors.ErrUnsupported))
	}
	var pids []int
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil || !bytes.Contains(append([]byte{0}, text...), []byte("\x00"+mark+"\x00")) {
			continue // ended, a zombie, or not started by the suite
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil && pid != os.Getpid() {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// endMarked kills the processes with the mark in their environment.
func endMarked(mark string) {
	pids, _ := marked(mark)
	for _, pid := range pids {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

// usage is the resource usage of processes.
type usage struct {
	bytes   int // resident
	files   int // open
	threads int
}

// usageOf returns the total usage of the processes with the mark.
func usageOf(mark string) (usage, error) {
	var sum usage
	pids, err := marked(mark)
	if err != nil {
		return sum, err
	}
	for _, pid := range pids {
		dir := filepath.Join("/proc", strconv.Itoa(pid))
		text, err := os.ReadFile(filepath.Join(dir, "status"))
		if err != nil {
			continue // it has ended
		}
		for line := range strings.Lines(string(text)) {
			words := strings.Fields(line)
			if len(words) < 2 {
				continue
			}
			n, _ := strconv.Atoi(words[1])
			switch words[0] {
			case "VmRSS:":
				sum.bytes += n << 10
			case "Threads:":
				sum.threads += n
			}
		}
		open, _ := os.ReadDir(filepath.Join(dir, "fd"))
		sum.files += len(open)
	}
	if sum.bytes == 0 {
		return sum, fmt.Errorf("the plugin's process cannot be seen: %w", errors.ErrUnsupported)
	}
	return sum, nil
}
