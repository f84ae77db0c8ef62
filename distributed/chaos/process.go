package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// tick is the unit of processor time in /proc.
const tick = time.Second / 100

// A process is one line of /proc.
type process struct {
	pid, parent int
	name, state string
	own         time.Duration // processor time
	children    time.Duration // that of those that have ended
}

// processes returns all processes in the namespace of this one.
func processes() []process {
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	var all []process
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil { // it has ended
			continue
		}
		pid, rest, _ := strings.Cut(string(text), " (")
		end := strings.LastIndex(rest, ") ")
		if end < 0 {
			continue
		}
		fields := strings.Fields(rest[end+2:])
		number := func(i int) int { n, _ := strconv.Atoi(fields[i]); return n }
		p := process{name: rest[:end], state: fields[0], parent: number(1)}
		p.pid, _ = strconv.Atoi(pid)
		p.own, p.children = tick*time.Duration(number(11)+number(12)), tick*time.Duration(number(13)+number(14))
		all = append(all, p)
	}
	return all
}

// below returns a process and its descendants, the process first.
func below(pid int) []process {
	children, found := map[int][]process{}, []process(nil)
	for _, p := range processes() {
		if p.pid == pid {
			found = append(found, p)
		}
		children[p.parent] = append(children[p.parent], p)
	}
	for i := 0; i < len(found); i++ {
		found = append(found, children[found[i].pid]...)
	}
	return found
}

// busy returns the processor time that this computer has used for anything.
func busy() (sum time.Duration) {
	text, _ := os.ReadFile("/proc/stat") // without it, there are no costs
	line, _, _ := strings.Cut(string(text), "\n")
	for i, field := range strings.Fields(line) {
		if n, err := strconv.Atoi(field); err == nil && i >= 1 && i <= 7 && i != 4 && i != 5 { // not while idle, and guests are in the first two
			sum += tick * time.Duration(n)
		}
	}
	return sum
}

// send sends a signal to processes.
func send(all []process, s syscall.Signal) {
	for _, p := range all {
		_ = syscall.Kill(p.pid, s)
	}
}
