package machine

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"sync"
	"time"
)

// Limits know until when accounts are limited, as the machines have told them.
type Limits interface {
	Tell(ctx context.Context, account string, until time.Time)
	// Until returns the zero time if the account is not limited, as far as is known. It answers within two seconds.
	Until(ctx context.Context, account string) time.Time
}

// A talk is the conversation with a coven. It writes lines of JSON to its output: before and after a landing, the branch whose turn it asks for or gives
// back; the account whose limit it asks for or tells; and at its end the state of the session. The answer to a turn is an empty line, once it has come, and that to
// an account is an answer.
type talk struct {
	answers io.WriteCloser
	turn    func(ctx context.Context, branch string) (release func())
	limits  Limits

	mu      sync.Mutex
	output  []byte // its end
	line    int    // start of the line that has not ended, in output
	release func() // of the turn that it asked for
}

// maxOutput limits the output that is kept, in bytes. The state is a line of some hundred.
const maxOutput = 16 << 10

// Write implements io.Writer for the output.
func (t *talk) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.output = append(t.output, p...)
	for {
		end := bytes.IndexByte(t.output[t.line:], '\n')
		if end < 0 {
			break
		}
		t.read(t.output[t.line : t.line+end])
		t.line += end + 1
	}
	over := max(0, len(t.output)-maxOutput)
	t.output, t.line = t.output[over:], max(0, t.line-over)
	return len(p), nil
}

// read reads a line.
func (t *talk) read(line []byte) {
	var asked struct {
		Turn    *string   `json:"turn"`
		Account string    `json:"account"`
		Until   time.Time `json:"until"`
	}
	switch {
	case json.Unmarshal(line, &asked) != nil:
	case asked.Account != "" && asked.Until.IsZero():
		go t.answer(asked.Account)
	case asked.Account != "":
		go t.limits.Tell(context.Background(), asked.Account, asked.Until)
	case asked.Turn != nil:
		t.giveBack()
		if *asked.Turn != "" {
			t.take(*asked.Turn)
		}
	}
}

// An answer says until when an account is limited, if it is.
type answer struct {
	Until time.Time `json:"until,omitzero"`
}

// answer answers until when an account is limited.
func (t *talk) answer(account string) {
	line, err := json.Marshal(answer{t.limits.Until(context.Background(), account)})
	if err == nil {
		_, _ = t.answers.Write(append(line, '\n')) // without a reader, coven has ended
	}
}

// take asks for a turn, and answers when it has come.
func (t *talk) take(branch string) {
	ctx, cancel := context.WithCancel(context.Background())
	came := make(chan func(), 1)
	go func() {
		release := t.turn(ctx, branch)
		_, _ = t.answers.Write([]byte("\n")) // without a reader, coven has ended
		came <- release
	}()
	t.release = func() {
		cancel()
		(<-came)()
	}
}

// giveBack gives the turn back, if there is one. Nothing waits for that.
func (t *talk) giveBack() {
	if t.release != nil {
		go t.release()
	}
	t.release = nil
}

// end ends the conversation.
func (t *talk) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.giveBack()
	_ = t.answers.Close() // it may have ended
}

// tail returns the end of the output.
func (t *talk) tail() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.output)
}
