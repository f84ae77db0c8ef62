package process

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestLargeOutputIsComplete(t *testing.T) {
	const size = 20 << 20
	contained(t, func(t *testing.T, l *Launcher) {
		var transcript bytes.Buffer
		child := start(t, l, Spec{Argv: shell(`yes 0123456789abcde | head -c "$1"`, "20971520"), Transcript: &transcript})
		got := readAll(t, child.Output())
		if want := strings.Repeat("0123456789abcde\n", size/16); got != want {
			t.Errorf("%d bytes of %d, or not the same", len(got), len(want))
		}
		if transcript.String() != got {
			t.Errorf("the transcript differs: %d bytes", transcript.Len())
		}
		if exit := wait(t, child); !exit.OK() {
			t.Errorf("exit is %v", exit)
		}
	})
}

func TestOneLongLine(t *testing.T) {
	contained(t, func(t *testing.T, l *Launcher) {
		child := start(t, l, Spec{Argv: shell(`head -c 5000000 /dev/zero | tr '\0' x; echo`)})
		if got := readAll(t, child.Output()); got != strings.Repeat("x", 5_000_000)+"\n" {
			t.Errorf("%d bytes, or not the same", len(got))
		}
	})
}

// A late reader gets all output that the kernel holds.
func TestLateReader(t *testing.T) {
	contained(t, func(t *testing.T, l *Launcher) {
		child := start(t, l, Spec{Argv: shell(`printf 'last words\r\n\033[0m'; exit 1`)})
		if exit := wait(t, child); exit.Code != 1 {
			t.Errorf("exit is %v", exit)
		}
		pass(2 * orphanWait) // longer than any deadline that end could have set
		if got := readAll(t, child.Output()); got != "last words\r\n\033[0m" {
			t.Errorf("got %q", got)
		}
		if n, err := child.Output().Read(make([]byte, 1)); n != 0 || err != io.EOF {
			t.Errorf("after the end: %d, %v", n, err)
		}
	})
}

func TestSlowReader(t *testing.T) {
	contained(t, func(t *testing.T, l *Launcher) {
		child := start(t, l, Spec{Argv: shell(`seq 1 20000`)})
		var got []byte
		for chunk := make([]byte, 1000); ; {
			n, err := child.Output().Read(chunk)
			got = append(got, chunk[:n]...)
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			pass(time.Millisecond) // the slowness under test
		}
		if !bytes.HasPrefix(got, []byte("1\n2\n")) || !bytes.HasSuffix(got, []byte("\n20000\n")) || len(got) != 108894 {
			t.Errorf("%d bytes", len(got))
		}
	})
}

// A program whose output is not read can be stopped, and Close copies the output to
// the transcript.
func TestNobodyReads(t *testing.T) {
	contained(t, func(t *testing.T, l *Launcher) {
		var transcript bytes.Buffer
		child, err := l.Start(t.Context(), Spec{Argv: []string{"/usr/bin/yes"}, Transcript: &transcript})
		if err != nil {
			t.Fatal(err)
		}
		eventually(t, "output waits", child.output.pending)
		child.Stop(nil)
		if exit := wait(t, child); !errors.Is(exit.Cause, ErrStopped) {
			t.Errorf("exit is %v", exit)
		}
		if err := child.Close(); err != nil {
			t.Error(err)
		}
		if !strings.HasPrefix(transcript.String(), "y\ny\n") {
			t.Errorf("the transcript is %.20q", transcript.String())
		}
	})
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

func TestBrokenTranscriptStops(t *testing.T) {
	l := launcher(t, 0)
	child := start(t, l, Spec{Argv: shell("echo all of it; sleep 1000"), Transcript: brokenWriter{}})
	if got := readAll(t, child.Output()); got != "all of it\n" {
		t.Errorf("got %q", got)
	}
	if exit := wait(t, child); !errors.Is(exit.Cause, syscall.ENOSPC) {
		t.Errorf("exit is %v", exit)
	}
}

// A process outside the tree that holds the terminal does not block its reader.
func TestOrphanHoldsTheTerminal(t *testing.T) {
	contained(t, func(t *testing.T, l *Launcher) {
		child := start(t, l, Spec{Argv: shell("readlink /proc/self/fd/1; read x; echo end")})
		name := readLine(t, child.Output())
		outside := must(os.OpenFile(name, os.O_RDWR|syscall.O_NOCTTY, 0))
		defer func() { _ = outside.Close() }()
		must(io.WriteString(child.Stdin(), "\n"))
		if got := readAll(t, child.Output()); got != "end\n" {
			t.Errorf("got %q", got)
		}
	})
}

// Neither does a process that floods the terminal.
func TestOrphanFloodsTheTerminal(t *testing.T) {
	l := launcher(t, 0)
	child := start(t, l, Spec{Argv: shell("readlink /proc/self/fd/1; read x")})
	outside := must(os.OpenFile(readLine(t, child.Output()), os.O_WRONLY|syscall.O_NOCTTY, 0))
	ctx, cancel := context.WithCancel(t.Context())
	flooded := make(chan struct{})
	go func() {
		defer close(flooded)
		for ctx.Err() == nil {
			if _, err := outside.Write(bytes.Repeat([]byte("flood"), 1000)); err != nil {
				return // the reader has closed its side
			}
		}
	}()
	must(io.WriteString(child.Stdin(), "\n"))
	if got := len(readAll(t, child.Output())); got < orphanBytes {
		t.Errorf("%d bytes", got)
	}
	cancel()
	<-flooded
	if err := outside.Close(); err != nil {
		t.Error(err)
	}
}

func TestLargeInput(t *testing.T) {
	contained(t, func(t *testing.T, l *Launcher) {
		child := start(t, l, Spec{Argv: []string{"md5sum"}})
		text := strings.Repeat("0123456789abcdef", 1<<16) // 1 MiB
		must(io.WriteString(child.Stdin(), text))
		if err := child.Stdin().Close(); err != nil {
			t.Fatal(err)
		}
		if got := readAll(t, child.Output()); got != "14d785daab3823736c981ca82a750c98  -\n" {
			t.Errorf("got %q", got)
		}
		if err := child.Stdin().Close(); err != nil {
			t.Errorf("closed again: %v", err)
		}
	})
}

// A writer gets an error when the program no longer reads, even while its shim lives.
func TestInputNobodyReads(t *testing.T) {
	contained(t, func(t *testing.T, l *Launcher) {
		child := start(t, l, Spec{Argv: shell("exec <&-; echo closed; sleep 1000")})
		readLine(t, child.Output())
		if _, err := io.WriteString(child.Stdin(), strings.Repeat("x", 1<<20)); !errors.Is(err, syscall.EPIPE) {
			t.Errorf("write: %v", err)
		}
	})
}
