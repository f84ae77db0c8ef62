// Package channel stores the messages that the agents of a session send each other while they work.
//
// A channel is a named list of messages. Its first message creates it. Every agent of the session may send to
// it and read it from any message on. Messages are numbered from 1 and are never removed.
//
// The messages of a channel are the lines of channels/NAME.jsonl in the session's directory, each a JSON object:
//
//	{"n":1,"time":"2026-11-25T10:00:00Z","from":"build","path":"implement#1","text":"hello"}
//
// A message is on disk before its sender gets the confirmation. An incomplete line is discarded.
package channel

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/coven-run/coven/internal/file/regularfile"
	"github.com/coven-run/coven/internal/text/lazyregexp"
)

// Dir is the directory of the channels in the session's directory.
const Dir = "channels"

// Limits of channels.
const (
	MaxText     = 64 << 10 // bytes of a message
	MaxWait     = time.Minute
	maxMessages = 10_000 // per channel
	maxChannels = 100
	maxRead     = 100 << 10 // bytes of text per read
	maxBytes    = 64 << 20  // total size of all channel files; used channels are held in memory
)

// nameRE matches the name of a channel, which is also a file name.
var nameRE = lazyregexp.New(`^[a-z0-9][a-z0-9_-]{0,63}$`)

// Message is a message of a channel.
type Message struct {
	N    int       `json:"n"` // from 1
	Time time.Time `json:"time"`
	From string    `json:"from"`           // the agent
	Path string    `json:"path,omitempty"` // of its step or subagent
	Text string    `json:"text"`
}

// Channels holds the channels of a session for its process. The zero value is not usable.
type Channels struct {
	dir string
	now func() time.Time

	mu    sync.Mutex
	known map[string][]Message // channels that were used
	sizes map[string]int64     // file sizes of all channels; nil if unknown
	more  chan struct{}        // closed when a message arrives in any channel
}

// New returns the channels of the session in a directory.
func New(session string, now func() time.Time) *Channels {
	return &Channels{dir: filepath.Join(session, Dir), now: now, known: map[string][]Message{}, more: make(chan struct{})}
}

// Send appends a message to a channel. It is on disk when Send returns.
func (c *Channels) Send(name, from, path, text string) (Message, error) {
	switch {
	case !nameRE.MatchString(name):
		return Message{}, badName(name)
	case text == "":
		return Message{}, errors.New("the message is empty")
	case len(text) > MaxText:
		return Message{}, fmt.Errorf("the message has %d bytes, the maximum is %d: put the text into a file and name it", len(text), MaxText)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	all, err := c.messages(name)
	if err != nil {
		return Message{}, err
	}
	if len(all) >= maxMessages {
		return Message{}, fmt.Errorf("channel %s has %d messages, the maximum", name, maxMessages)
	}
	m := Message{N: len(all) + 1, Time: c.now().UTC(), From: from, Path: path, Text: text}
	line, err := encode(m)
	if err == nil {
		err = c.fits(name, len(line))
	}
	if err != nil {
		return Message{}, err
	}
	if err := c.write(name, m, line); err != nil {
		delete(c.known, name) // reload from disk
		c.sizes = nil
		return Message{}, fmt.Errorf("store the message: %w", err)
	}
	c.sizes[name] += int64(len(line))
	c.known[name] = append(all, m)
	close(c.more)
	c.more = make(chan struct{})
	return m, nil
}

// fits returns an error if the channel cannot grow by more bytes.
func (c *Channels) fits(name string, more int) error {
	if c.sizes == nil {
		if err := c.measure(); err != nil {
			return err
		}
	}
	if _, exists := c.sizes[name]; !exists && len(c.sizes) >= maxChannels {
		return fmt.Errorf("the session has %d channels, the maximum: use one of them", maxChannels)
	}
	total := int64(more)
	for _, size := range c.sizes {
		total += size
	}
	if total > maxBytes {
		return fmt.Errorf("the channels of the session would have %d bytes, the maximum is %d: put the text into a file and name it", total, maxBytes)
	}
	return nil
}

// measure loads the sizes of all channels.
func (c *Channels) measure() error {
	entries, err := os.ReadDir(c.dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("list the channels: %w", err)
	}
	sizes := map[string]int64{}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			return fmt.Errorf("list the channels: %w", err)
		}
		sizes[strings.TrimSuffix(e.Name(), ".jsonl")] = info.Size()
	}
	c.sizes = sizes
	return nil
}

// Read returns the messages of a channel after number since, oldest first, limited in size. last is the
// number of the channel's newest message. If there are none, it waits up to wait for one, at most MaxWait.
func (c *Channels) Read(ctx context.Context, name string, since int, wait time.Duration) (after []Message, last int, err error) {
	if !nameRE.MatchString(name) {
		return nil, 0, badName(name)
	}
	timeout := time.NewTimer(min(wait, MaxWait))
	defer timeout.Stop()
	for {
		after, last, more, err := c.after(name, since)
		if err != nil || len(after) > 0 || wait <= 0 {
			return after, last, err
		}
		select {
		case <-more:
		case <-timeout.C:
			return nil, last, nil
		case <-ctx.Done():
			return nil, last, context.Cause(ctx)
		}
	}
}

// after returns the messages of a channel after number since. more is closed when another message arrives.
func (c *Channels) after(name string, since int) (found []Message, last int, more <-chan struct{}, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	all, err := c.messages(name)
	if err != nil {
		return nil, 0, nil, err
	}
	size := 0
	for _, m := range all[min(max(since, 0), len(all)):] {
		if size += len(m.Text); size > maxRead && len(found) > 0 {
			break
		}
		found = append(found, m)
	}
	return found, len(all), c.more, nil
}

// messages returns the messages of a channel, which may be empty.
func (c *Channels) messages(name string) ([]Message, error) {
	if all, ok := c.known[name]; ok {
		return all, nil
	}
	all, err := c.load(name)
	if err == nil && len(all) > 0 {
		c.known[name] = all
	}
	return all, err
}

// load reads a channel and removes an incomplete last line.
func (c *Channels) load(name string) ([]Message, error) {
	all, whole, size, err := c.read(name)
	if err == nil && whole < size {
		if err = c.cut(name, whole); err != nil {
			err = fmt.Errorf("repair channel %s: %w", name, err)
		}
	}
	if err != nil {
		return nil, err
	}
	return all, nil
}

// read reads a channel, whose file may not exist. whole is the size of its complete lines, size the size of the file.
func (c *Channels) read(name string) (all []Message, whole, size int64, err error) {
	if err := c.directory(); err != nil {
		return nil, 0, 0, err
	}
	data, err := regularfile.ReadIn(c.dir, name+".jsonl", maxBytes)
	if errors.Is(err, os.ErrNotExist) {
		return nil, 0, 0, nil
	}
	if err != nil {
		return nil, 0, 0, fmt.Errorf("read channel %s: %w", name, err)
	}
	lines := data[:bytes.LastIndexByte(data, '\n')+1]
	if all, err = parse(lines); err != nil {
		return nil, 0, 0, fmt.Errorf("channel %s is damaged: %w", name, err)
	}
	return all, int64(len(lines)), int64(len(data)), nil
}

func (c *Channels) cut(name string, size int64) error {
	file, err := regularfile.OpenFileIn(c.dir, name+".jsonl", os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return errors.Join(file.Truncate(size), file.Close())
}

// encode returns a message as a line.
func encode(m Message) ([]byte, error) {
	line, err := json.Marshal(m)
	return append(line, '\n'), err
}

// parse reads the lines of a channel.
func parse(data []byte) (all []Message, err error) {
	for line := range bytes.Lines(data) {
		var m Message
		if err := json.Unmarshal(line, &m); err != nil {
			return nil, fmt.Errorf("line %d: %w", len(all)+1, err)
		}
		if m.N != len(all)+1 {
			return nil, fmt.Errorf("line %d has the message %d", len(all)+1, m.N)
		}
		all = append(all, m)
	}
	return all, nil
}

// directory returns an error if the channels' directory is something else, such as a link out of the session.
func (c *Channels) directory() error {
	if err := regularfile.Directory(filepath.Dir(c.dir), Dir); err != nil {
		return fmt.Errorf("the channels of the session: %w", err)
	}
	return nil
}

// write appends lines to the file of a channel; m is their first message. After a failed write it restores the file.
func (c *Channels) write(name string, m Message, lines []byte) (err error) {
	if err := c.directory(); err != nil {
		return err
	}
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return err
	}
	file, err := regularfile.OpenFileIn(c.dir, name+".jsonl", os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	before, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	if _, err = file.Write(lines); err == nil {
		err = file.Sync()
	}
	if err != nil {
		return errors.Join(err, file.Truncate(before))
	}
	if m.N == 1 {
		return regularfile.SyncDir(c.dir)
	}
	return nil
}

func badName(name string) error {
	if len(name) > 64 {
		name = name[:64]
	}
	return fmt.Errorf("%q is not the name of a channel: it has lower-case letters, digits, - and _", name)
}
