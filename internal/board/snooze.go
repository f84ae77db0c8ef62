package board

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/file/regularfile"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/terminal"
	"github.com/coven-run/coven/internal/text/shellword"
)

// snoozedFile is a file of a session, whose question waits for later: see docs/formats/session.md.
const snoozedFile = "snoozed.json"

// maxSnoozed limits the size of the file in bytes.
const maxSnoozed = 4 << 10

// snooze is the content of the file.
type snooze struct {
	Question string    `json:"question"`
	Until    time.Time `json:"until,omitzero"` // zero: until the question changes
}

// Snooze removes the question of a session from those that need a person until a time, or until it changes if the time is zero.
// A new question is shown at once.
func Snooze(v session.View, until time.Time) error {
	if v.Dir == "" || sectionOf(v) != NeedsYou {
		return exit.Failedf("coven why "+shellword.Word(v.Task), "task %s does not wait for you", v.Task)
	}
	data, err := json.Marshal(snooze{Question: questionOf(v), Until: until})
	if err != nil {
		return err
	}
	return regularfile.Replace(filepath.Join(v.Dir, snoozedFile), append(data, '\n'), 0o600)
}

// Wake undoes Snooze.
func Wake(v session.View) error {
	err := os.Remove(filepath.Join(v.Dir, snoozedFile))
	if v.Dir == "" || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// questionOf identifies the question of a session: every change of its state is another one.
func questionOf(v session.View) string {
	if open := v.OpenApprovals(); v.Status == session.Running && len(open) > 0 {
		return "approval " + strconv.Itoa(open[0].N)
	}
	return fmt.Sprintf("%s %s", v.Shown().Status, v.Updated.UTC().Format(time.RFC3339Nano))
}

// snoozed returns the snooze of a session's present question. ok is false if there is none, or if it is over.
func snoozed(v session.View, now time.Time) (s snooze, ok bool) {
	data, err := regularfile.ReadIn(v.Dir, snoozedFile, maxSnoozed)
	if err != nil || json.Unmarshal(data, &s) != nil { // a damaged file hides no question
		return snooze{}, false
	}
	return s, s.Question == questionOf(v) && (s.Until.IsZero() || now.Before(s.Until))
}

// sleep moves the card of a snoozed question to those that wait.
func (c Card) sleep(now time.Time) Card {
	if c.Section != NeedsYou || c.View.Dir == "" {
		return c
	}
	s, ok := snoozed(c.View, now)
	if !ok {
		return c
	}
	until := "it changes"
	if !s.Until.IsZero() {
		until = terminal.Clock(s.Until, now)
	}
	c.Section, c.Snoozed, c.Wakes, c.Text = Waiting, true, s.Until, "snoozed until "+until+": "+c.Text
	return c
}
