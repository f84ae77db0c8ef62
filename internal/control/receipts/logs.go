package receipts

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/coven-run/coven/internal/attestation"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/session"
)

// maxLog limits the size of a log, and maxSums the number of hashes that are computed to find an output in it.
const (
	maxLog  = 64 << 20
	maxSums = 20_000_000
)

// logs compares the hashes of the logs with the outputs in the logs of the session in dir, and those of the lists of read
// files with the lists.
func (r *Report) logs(dir string, events []event.Event) {
	compared, skipped, opened := 0, "", map[string]*stepLog{}
	for _, c := range r.Statement.Predicate.Checks {
		if why := readsProblem(dir, c); why != "" {
			r.Add("logs", Failed, "%s", why)
			return
		}
		if ranElsewhere(events, c) {
			skipped = "; the log of " + c.Command + " is in the session of another task"
			continue
		}
		if opened[c.Step] == nil {
			opened[c.Step] = readLog(dir, c.Step)
		}
		found, why := opened[c.Step].has(c.Log)
		switch {
		case found:
			compared++
		case why == "":
			r.Add("logs", Failed, "the log of %s in session %s does not have the recorded hash", c.Command, filepath.Base(dir))
			return
		default:
			skipped = "; " + c.Command + ": " + why
		}
	}
	if compared == 0 && skipped != "" {
		r.Add("logs", Skipped, "%s", strings.TrimPrefix(skipped, "; "))
		return
	}
	r.Add("logs", OK, "%d have the recorded hash%s", compared, skipped)
}

// ranElsewhere reports whether a check ran in the worktree of another session, together with the change of that session.
func ranElsewhere(events []event.Event, c attestation.Check) bool {
	ended, started := false, false
	for _, e := range events {
		if e.Path == c.Step {
			ended = ended || e.Type == event.CheckEnded && event.As[event.Receipt](e).Command == c.Command
			started = started || e.Type == event.CheckStarted && event.As[event.Check](e).Text == c.Command
		}
	}
	return ended && !started
}

// readsProblem returns the reason why the list of the files that a check read outside the tree is not the recorded one.
func readsProblem(dir string, c attestation.Check) string {
	if c.ReadOutside == nil || c.ReadOutside.SHA256 == "" {
		return ""
	}
	list, err := session.Reads(dir, c.ReadOutside.SHA256)
	if err != nil {
		return fmt.Sprintf("the list of the files that %s read outside the tree: %v", c.Command, err)
	}
	if sum := sha256.Sum256(list); hex.EncodeToString(sum[:]) != c.ReadOutside.SHA256 {
		return fmt.Sprintf("the list of the files that %s read outside the tree does not have the recorded hash", c.Command)
	}
	return ""
}

// A stepLog is the log of a step, in which outputs of checks are found by their hash.
type stepLog struct {
	text []byte
	ends []int  // of the outputs that have been found
	why  string // why outputs cannot be found; empty if they can
}

func readLog(dir, step string) *stepLog {
	f, err := session.ReadLog(dir, step)
	if errors.Is(err, fs.ErrNotExist) {
		return &stepLog{}
	}
	if err != nil {
		return &stepLog{why: err.Error()}
	}
	defer f.Close() //nolint:errcheck // read only
	text, err := io.ReadAll(io.LimitReader(f, maxLog+1))
	switch {
	case err != nil:
		return &stepLog{why: err.Error()}
	case len(text) > maxLog:
		return &stepLog{why: "its log is too large to compare"}
	}
	return &stepLog{text: text}
}

// has reports whether the log contains an output with this hash. why is the reason if that cannot be decided.
func (l *stepLog) has(sum string) (found bool, why string) {
	want, err := hex.DecodeString(sum)
	if err != nil || l.why != "" {
		return false, l.why
	}
	budget := maxSums
	for _, every := range []bool{false, true} { // most outputs end with a line
		for _, start := range l.starts() {
			if n := prefix(l.text[start:], want, every, &budget); n >= 0 {
				l.ends = append(l.ends, start+n)
				return true, ""
			}
		}
	}
	switch {
	case budget < 0:
		why = "its log is too large to compare"
	case bytes.Contains(l.text, []byte("***")):
		why = "its log hides a secret"
	}
	return false, why
}

// starts returns the positions at which an output may begin: those of lines, and the ends of other outputs.
func (l *stepLog) starts() []int {
	starts := append([]int{0}, l.ends...)
	for i, c := range l.text {
		if c == '\n' {
			starts = append(starts, i+1)
		}
	}
	return starts
}

// prefix returns the length of the prefix of text with a hash, or -1. It tries the prefixes that end with a line, or every
// one, until the budget is spent.
func prefix(text, want []byte, every bool, budget *int) int {
	sum := sha256.New()
	for i := 0; i <= len(text) && *budget >= 0; {
		if *budget--; bytes.Equal(sum.Sum(nil), want) {
			return i
		}
		next := i + 1
		if !every {
			if line := bytes.IndexByte(text[i:], '\n'); line >= 0 {
				next = i + line + 1
			} else {
				next = max(len(text), next)
			}
		}
		if next > len(text) {
			return -1
		}
		sum.Write(text[i:next])
		*budget -= (next - i) / sha256.BlockSize
		i = next
	}
	return -1
}
