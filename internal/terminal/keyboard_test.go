package terminal

import (
	"bytes"
	"errors"
	"io"
	"os"
	"testing"

	"github.com/creack/pty"
)

// eager types an answer as soon as the screen shows a question.
type eager struct {
	question, answer string
	terminal         io.Writer
}

func (e *eager) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte(e.question)) {
		if _, err := io.WriteString(e.terminal, e.answer); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}

// Input before the question appears is discarded, but later input is not.
func TestAnswerAtOnce(t *testing.T) {
	user, in, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = in.Close(), user.Close() })
	if _, err := user.WriteString("before\r"); err != nil {
		t.Fatal(err)
	}
	screen := &eager{question: "why?", answer: "after\r", terminal: user}
	k := NewKeyboard(in, io.Discard)
	l := newLive(t, newWindow(80, 24))
	l.out, l.keys = screen, k
	if err := l.open(&Choice{Question: "why?"}); err != nil {
		t.Fatal(err)
	}
	defer l.close()
	keys, err := k.reader()
	if err != nil {
		t.Fatal(err)
	}
	defer keys.close()
	p := make([]byte, 64)
	n, err := keys.Read(p)
	if err != nil || string(p[:n]) != "after\r" {
		t.Errorf("the question read %q, %v, want the answer alone", p[:n], err)
	}
}

// The end of a question ends its read without consuming a key of the next question.
func TestKeyReaderCloses(t *testing.T) {
	in, typed, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = in.Close(), typed.Close() })
	k := NewKeyboard(in, io.Discard)
	for range 200 {
		first, err := k.reader()
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error)
		go func() {
			_, err := first.Read(make([]byte, 8))
			ended <- err
		}()
		first.close()
		if err := <-ended; !errors.Is(err, io.EOF) {
			t.Fatalf("a read that was given up ended with %v, want EOF", err)
		}
		if _, err := typed.WriteString("a"); err != nil {
			t.Fatal(err)
		}
		if n, err := first.Read(make([]byte, 8)); n != 0 || !errors.Is(err, io.EOF) {
			t.Fatalf("a read after the end of the question: %d, %v, want EOF", n, err)
		}
		next, err := k.reader()
		if err != nil {
			t.Fatal(err)
		}
		key := make([]byte, 8)
		n, err := next.Read(key)
		next.close()
		if err != nil || string(key[:n]) != "a" {
			t.Fatalf("the next question read %q, %v, want the key typed for it", key[:n], err)
		}
	}
}
