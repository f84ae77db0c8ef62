package channel

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Until returns the messages of a session that were sent until a time, by channel. It changes nothing, because
// the session may be running.
func Until(session string, when time.Time) (map[string][]Message, error) {
	c := New(session, nil)
	if err := c.directory(); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(c.dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("list the channels: %w", err)
	}
	all := map[string][]Message{}
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".jsonl")
		if !ok || !nameRE.MatchString(name) {
			continue
		}
		sent, _, _, err := c.read(name)
		if err != nil {
			return nil, err
		}
		if later := slices.IndexFunc(sent, func(m Message) bool { return m.Time.After(when) }); later >= 0 {
			sent = sent[:later] // cut there even if the clock went back later: numbers must be consecutive
		}
		if len(sent) > 0 {
			all[name] = sent
		}
	}
	return all, nil
}

// Begin writes channels to a session that has none.
func Begin(session string, all map[string][]Message) error {
	c := New(session, nil)
	for name, sent := range all {
		var lines []byte
		for _, m := range sent {
			line, err := encode(m)
			if err != nil {
				return err
			}
			lines = append(lines, line...)
		}
		if err := c.write(name, sent[0], lines); err != nil {
			return fmt.Errorf("write channel %s of %s: %w", name, filepath.Base(session), err)
		}
	}
	return nil
}
