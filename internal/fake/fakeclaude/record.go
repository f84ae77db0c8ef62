package fakeclaude

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Record is one line of $HOME/.fake-claude/record.jsonl. It describes how a run was started.
// It is written when the first message was read or the input ended without one.
type Record struct {
	Time  time.Time `json:"time"`
	PID   int       `json:"pid"`
	Argv  []string  `json:"argv"` // without the program's name
	Cwd   string    `json:"cwd"`
	Env   []string  `json:"env"`
	TTY   [3]bool   `json:"tty"`   // whether standard input, output, error are terminals
	Input string    `json:"input"` // the first line, unchanged
}

// Records reads the records in a home directory. A missing file is no error.
func Records(home string) ([]Record, error) {
	file, err := os.Open(filepath.Join(stateDir(home), "record.jsonl"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read records: %w", err)
	}
	defer func() { _ = file.Close() }() // read only
	var records []Record
	scanner := bufio.NewScanner(file)
	scanner.Buffer(nil, 1<<30)
	for scanner.Scan() {
		var record Record
		if err := json.Unmarshal(scanner.Bytes(), &record); err != nil {
			return nil, fmt.Errorf("decode record: %w", err)
		}
		records = append(records, record)
	}
	return records, scanner.Err()
}

// keepRecord appends the record of this run if the directory for it exists.
// nth counts the runs so far, including this one, whose first message contains match.
func keepRecord(home, cwd string, args []string, input string) (nth func(match string) int, err error) {
	record := Record{
		Time: time.Now(), PID: os.Getpid(), Argv: args, Cwd: cwd, Env: os.Environ(), Input: input,
		TTY: [3]bool{isTerminal(os.Stdin), isTerminal(os.Stdout), isTerminal(os.Stderr)},
	}
	file, err := os.OpenFile(filepath.Join(stateDir(home), "record.jsonl"), os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	if errors.Is(err, fs.ErrNotExist) {
		return func(string) int { return 1 }, nil
	}
	if err != nil {
		return nil, fmt.Errorf("record run: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil { // one line, one number
		return nil, fmt.Errorf("record run: %w", err)
	}
	if _, err := file.WriteString(encode(record) + "\n"); err != nil {
		return nil, fmt.Errorf("record run: %w", err)
	}
	records, err := Records(home)
	return func(match string) int {
		count := 0
		for _, one := range records {
			if strings.Contains(one.Input, match) {
				count++
			}
		}
		return count
	}, err
}
