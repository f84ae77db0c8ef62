package process

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
)

// processes reads the process table.
func processes() (processTable, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	table := processTable{}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		if info, err := readProcess(pid); err == nil { // otherwise it has ended
			table[pid] = info
		}
	}
	return table, nil
}

func readProcess(pid int) (processInfo, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return processInfo{}, err
	}
	var info processInfo
	var state string
	var skip int64
	// pid (name) state parent group session ...; the name may contain any characters,
	// including ")".
	_, err = fmt.Fscan(bytes.NewReader(data[bytes.LastIndexByte(data, ')')+1:]),
		&state, &info.parent, &info.group, &info.session,
		&skip, &skip, &skip, &skip, &skip, &skip, &skip, &skip, &skip, &skip, &skip, &skip, &skip, &skip, &skip,
		&info.started)
	info.zombie = state == "Z" || state == "X"
	return info, err
}
