package chat

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/coven-run/coven/internal/cli"
	"github.com/coven-run/coven/internal/terminal"
	"github.com/coven-run/coven/internal/text/lazyregexp"
)

// greeting explains the keys.
const greeting = "Enter sends a message; during a turn, it is queued. Ctrl-C stops a turn, Ctrl-D or /exit leaves.\n"

// composer reads the messages of the user, also while a turn runs. Messages wait for the end of the turn.
type composer struct {
	app  *cli.App
	past *history
	busy atomic.Bool // a turn runs

	messages chan message
	stop     context.CancelFunc
	over     sync.WaitGroup
	lines    bool // the terminal reports no keys: read a line when a message is needed
}

// message is a message of the user. The chat ends if it is empty.
type message struct {
	text string
	err  error
}

// maxWaiting limits the messages that wait for a turn.
const maxWaiting = 100

// compose starts to read messages, in lines or by single keys.
func compose(ctx context.Context, a *cli.App, past *history, lines bool) *composer {
	ctx, stop := context.WithCancel(ctx)
	c := &composer{app: a, past: past, stop: stop, messages: make(chan message, maxWaiting), lines: lines}
	if lines {
		return c
	}
	m := terminal.NewMessage(past.messages)
	m.Interrupt = c.interrupt
	c.over.Go(func() {
		for {
			err := a.Compose(ctx, m)
			if err == nil && !m.Left && !c.accept(m.Text) {
				m.Again()
				continue
			}
			read := message{text: m.Text, err: err}
			if m.Left || isExit(m.Text) {
				read.text = ""
			}
			select {
			case c.messages <- read:
			case <-ctx.Done():
				return
			}
			if err != nil || read.text == "" {
				return
			}
			m.Again()
		}
	})
	return c
}

// interrupt handles the key Ctrl-C while a turn runs like the signal: see cli.App.OnInterrupt.
func (c *composer) interrupt() bool {
	return c.busy.Load() && syscall.Kill(os.Getpid(), syscall.SIGINT) == nil
}

// end ends the reading.
func (c *composer) end() {
	c.stop()
	c.over.Wait()
}

// next returns the next message. It is empty if the user leaves.
func (c *composer) next(ctx context.Context) (string, error) {
	if !c.lines {
		select {
		case m := <-c.messages:
			return m.text, m.err
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
	for {
		text, left, err := c.app.AskLine(ctx)
		if err != nil || left || isExit(text) {
			return "", err
		}
		if c.accept(text) {
			return text, nil
		}
	}
}

// accept reports whether a text is a message. It refuses commands that do not exist, and shows messages that must wait.
func (c *composer) accept(text string) bool {
	text = strings.TrimSpace(text)
	switch {
	case text == "":
		return false
	case isExit(text):
		return true
	case command.MatchString(text):
		name, _, _ := strings.Cut(text, " ")
		help := "/exit leaves the chat; to send a text that begins with a slash, put a space before it"
		if name != "/help" {
			help = fmt.Sprintf("there is no command %s: ", name) + help
		}
		_ = c.app.Showf("%s\n", terminal.Printable(help)) // the text stays in the history
		return false
	}
	c.past.add(text)
	if c.busy.Load() {
		_ = c.app.Showf("(queued) %s", quoted(text)) // it is sent in any case
	}
	return true
}

// command matches a message that looks like a command, and not like a path.
var command = lazyregexp.New(`^/[a-z][a-z-]*( |$)`)

func isExit(text string) bool {
	text = strings.TrimSpace(text)
	return text == "/exit" || text == "/quit"
}
