package receipts

import (
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

// logs compares the hashes of a statement of the session in dir with its logs and its lists of read files.
func (r *Report) logs(dir string, s attestation.Statement, events []event.Event) {
	compared, skipped := 0, ""
	for _, c := range s.Predicate.Checks {
		if ranElsewhere(events, c) {
			skipped = "; the log of " + c.Command + " is in the session of another task"
			continue
		}
		part := partOf(events, c)
		if part.isOld() {
			skipped = "; the session does not say where the output of " + c.Command + " is in its log"
			continue
		}
		if isAway(dir, events, c) {
			skipped = "; the log of " + c.Command + " is not here: a remote kept the session, and another machine may have run the step"
			continue
		}
		for _, why := range []string{logProblem(dir, c, part), readsProblem(dir, c)} {
			if why != "" {
				r.Add("logs", Failed, "in session %s, %s", filepath.Base(dir), why)
				return
			}
		}
		compared++
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

// isAway reports whether there is no log of a check because it may have run on another machine. Logs do not follow a session that a remote keeps.
func isAway(dir string, events []event.Event, c attestation.Check) bool {
	if len(events) == 0 || event.As[event.Session](events[0]).Remote == "" {
		return false
	}
	f, err := session.ReadLog(dir, c.Step)
	if err == nil {
		_ = f.Close() // read only
	}
	return errors.Is(err, fs.ErrNotExist)
}

// logPart is the output of a check in the log of its step.
type logPart struct{ event.LogPart }

// isOld reports whether the part was recorded by a version that did not record its place.
func (p logPart) isOld() bool {
	empty := sha256.Sum256(nil)
	return p.Size == 0 && p.Sum != hex.EncodeToString(empty[:])
}

// partOf returns the part of the log that has the output of a check.
func partOf(events []event.Event, c attestation.Check) (part logPart) {
	for _, e := range events {
		receipts := []event.Receipt{event.As[event.Receipt](e)}
		if e.Type == event.StepCompleted {
			receipts = event.As[event.Result](e).Receipts
		}
		for _, r := range receipts {
			if e.Path == c.Step && r.Sum == c.Log {
				part = logPart{r.LogPart}
			}
		}
	}
	return part
}

// logProblem returns the reason why the output of a check in the log is not the recorded one.
func logProblem(dir string, c attestation.Check, part logPart) string {
	f, err := session.ReadLog(dir, c.Step)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "the log of " + c.Command + " is missing"
	case err != nil:
		return fmt.Sprintf("the log of %s: %v", c.Command, err)
	}
	defer f.Close() //nolint:errcheck // read only
	sum := sha256.New()
	if _, err := io.Copy(sum, io.NewSectionReader(f, part.At, part.Size)); err != nil {
		return fmt.Sprintf("the log of %s: %v", c.Command, err)
	}
	if hex.EncodeToString(sum.Sum(nil)) != c.Log {
		return fmt.Sprintf("the log of %s does not have the recorded hash", c.Command)
	}
	return ""
}

// readsProblem returns the reason why the list of the files that a check read outside the tree is not the recorded one.
func readsProblem(dir string, c attestation.Check) string {
	if c.ReadOutside == nil || c.ReadOutside.SHA256 == "" {
		return ""
	}
	const files = "the list of the files that %s read outside the tree"
	list, err := session.Reads(dir, c.ReadOutside.SHA256)
	sum := sha256.Sum256(list)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Sprintf(files+" is missing", c.Command)
	case err != nil:
		return fmt.Sprintf(files+": %v", c.Command, err)
	case hex.EncodeToString(sum[:]) != c.ReadOutside.SHA256:
		return fmt.Sprintf(files+" does not have the recorded hash", c.Command)
	}
	return ""
}
