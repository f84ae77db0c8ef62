package mcp

import (
	"bytes"
	"fmt"
	"os"
)

// stopped reports whether a process was stopped by a signal, so that it cannot answer.
func stopped(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, state, _ := bytes.Cut(stat[max(bytes.LastIndexByte(stat, ')'), 0):], []byte(" "))
	return len(state) > 0 && state[0] == 'T'
}
