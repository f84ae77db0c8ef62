package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/vt"
	"github.com/creack/pty"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/coven-run/coven/internal/fake/fakescreen"
)

// cmdPty implements pty [WAIT[=>DO] ...] -- COMMAND: it runs a command on a terminal. Each time the output
// since the last match contains WAIT, it does DO. All output goes to the file "screen". With ! the command
// must fail; the exit code goes to the file "code". DO may be
//
// TEXT              type TEXT and Enter
// ^C                type one control character
// keys TEXT         type TEXT exactly, where \n is Enter, \t Tab, \e Esc, [[ and ]] mark a paste
// paste FILE        paste the content of FILE, and type Enter
// noise N           type N random bytes, without those that begin a command of coven ui
// hangup            close the terminal
// size WIDTHxHEIGHT change the size of the window
// shot FILE         write the contents of the window to FILE
// shows TEXT        wait until the window shows TEXT, where \n ends a row
// sees TEXT         the same for a program that draws a whole screen
// frame FILE        write that screen to FILE
// !COMMAND          run a shell command at the same time
func cmdPty(ts *testscript.TestScript, neg bool, args []string) {
	at := 0
	for at < len(args) && args[at] != "--" {
		at++
	}
	if at >= len(args)-1 {
		ts.Fatalf("usage: pty [WAIT[=>DO] ...] -- COMMAND")
	}
	program, err := lookPath(args[at+1], ts.Getenv("PATH"))
	ts.Check(err)
	cmd := exec.CommandContext(context.Background(), program, args[at+2:]...)
	cmd.Dir = ts.MkAbs(".")
	cmd.Env = environment(ts)
	size := size(ts)
	master, err := pty.StartWithSize(cmd, &size)
	ts.Check(err)
	master, err = unblocked(master)
	ts.Check(err)
	screen := newPane(int(size.Cols), int(size.Rows))
	go func() { _, _ = io.Copy(master, screen.full) }() // answers to the program's questions about the terminal
	copied := make(chan struct{})
	go func() { defer close(copied); _, _ = io.Copy(screen, master) }()
	var failed error
	for _, step := range args[:at] {
		wait, do, acts := strings.Cut(step, "=>")
		if !screen.await(wait) {
			failed = fmt.Errorf("the screen never showed %s", wait)
		} else if acts {
			failed = act(ts, master, screen, do)
		}
		if failed != nil {
			_ = cmd.Process.Kill()
			break
		}
	}
	err = wait(cmd)
	select {
	case <-copied:
	case <-time.After(time.Second): // a child of the command has the terminal open
	}
	ts.Check(os.WriteFile(ts.MkAbs("screen"), []byte(screen.text()), 0o644))
	ts.Check(os.WriteFile(ts.MkAbs("code"), []byte(fmt.Sprintln(cmd.ProcessState.ExitCode())), 0o644))
	closed := master.Close() != nil // closed by a step
	if failed == nil && !closed && screen.window.CursorHidden() {
		failed = errors.New("the cursor was left hidden")
	}
	if failed != nil || (err != nil) != neg {
		ts.Fatalf("%v (ended with %v); the window:\n%s\nthe screen:\n%s", failed, err, screen.window.Text(), screen.text())
	}
}

// act performs a step of pty.
func act(ts *testscript.TestScript, master *os.File, screen *pane, do string) error {
	word, rest, _ := strings.Cut(do, " ")
	switch {
	case strings.HasPrefix(do, "!"):
		meanwhile(ts, do[1:])
		return nil
	case strings.HasPrefix(do, "^"):
		return typed(master, string(rune(do[1]-'@')))
	case word == "keys":
		return typed(master, strings.NewReplacer(`\n`, "\r", `\t`, "\t", `\e`, "\x1b", "[[", "\x1b[200~", "]]", "\x1b[201~").Replace(rest))
	case word == "paste":
		return typed(master, "\x1b[200~"+strings.ReplaceAll(ts.ReadFile(rest), "\n", "\r")+"\x1b[201~\r")
	case word == "noise":
		return typed(master, noise(ts, rest))
	case do == "hangup":
		return master.Close()
	case word == "size":
		size, err := sizeOf(rest)
		if err != nil {
			return err
		}
		screen.resize(int(size.Cols), int(size.Rows))
		return pty.Setsize(master, &size)
	case word == "shot":
		return os.WriteFile(ts.MkAbs(rest), []byte(screen.window.Text()), 0o644)
	case word == "frame":
		return os.WriteFile(ts.MkAbs(rest), []byte(screen.frame()), 0o644)
	case word == "sees":
		return screen.sees(rest)
	case word == "shows":
		return screen.shows(strings.ReplaceAll(rest, `\n`, "\n"))
	}
	return typed(master, do+"\r")
}

// noise returns random bytes, the same in each run.
func noise(ts *testscript.TestScript, count string) string {
	n, err := strconv.Atoi(count)
	ts.Check(err)
	random := rand.New(rand.NewPCG(1, 37))
	var b strings.Builder
	for b.Len() < n {
		if c := byte(random.IntN(256)); !strings.ContainsRune("!:vozZeRyY\r\n\x13", rune(c)) {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// size returns the size of the terminals of a script: the variable SIZE, such as 80x24, or 120x40.
func size(ts *testscript.TestScript) pty.Winsize {
	set := ts.Getenv("SIZE")
	if set == "" {
		return pty.Winsize{Rows: 40, Cols: 120}
	}
	s, err := sizeOf(set)
	ts.Check(err)
	return s
}

// sizeOf parses WIDTHxHEIGHT.
func sizeOf(text string) (size pty.Winsize, err error) {
	_, err = fmt.Sscanf(text, "%dx%d", &size.Cols, &size.Rows)
	return size, err
}

func typed(master *os.File, text string) error {
	_, err := io.WriteString(master, text)
	return err
}

// unblocked returns a terminal that a pending read does not keep open when it is closed.
func unblocked(master *os.File) (*os.File, error) {
	fd, err := syscall.Dup(int(master.Fd()))
	if err != nil {
		return nil, err
	}
	if err := syscall.SetNonblock(fd, true); err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "terminal"), master.Close()
}

// meanwhile runs a shell command while another command waits.
func meanwhile(ts *testscript.TestScript, command string) {
	cmd := exec.CommandContext(context.Background(), "sh", "-c", command)
	cmd.Dir, cmd.Env = ts.MkAbs("."), environment(ts)
	out, err := cmd.CombinedOutput()
	ts.Logf("%s\n%s", command, out)
	if err != nil {
		ts.Fatalf("meanwhile: %v", err)
	}
}

// wait waits for a command, and kills it after patience.
func wait(cmd *exec.Cmd) error {
	timer := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	return cmd.Wait()
}

// pane is the output of a terminal so far.
type pane struct {
	window *fakescreen.Window
	full   *vt.Emulator // the same with all sequences, but without the history and the wrapping of lines

	mu   sync.Mutex
	buf  bytes.Buffer
	seen int // await searches only the output after its last match
}

func newPane(width, height int) *pane {
	return &pane{window: fakescreen.New(width, height), full: vt.NewEmulator(width, height)}
}

func (s *pane) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, _ = s.full.Write(p)
	_, _ = s.window.Write(p)
	return s.buf.Write(p)
}

// resize changes the size of the window between two writes.
func (s *pane) resize(width, height int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.window.Resize(width, height)
	s.full.Resize(width, height)
}

// frame returns the rows of the full screen.
func (s *pane) frame() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	rows := strings.Split(ansi.Strip(s.full.String()), "\n")
	for i, row := range rows {
		rows[i] = strings.TrimRight(row, " \r")
	}
	return strings.Join(rows, "\n") + "\n"
}

// sees waits until the full screen contains a text.
func (s *pane) sees(text string) error {
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); pause() {
		if strings.Contains(s.frame(), text) {
			return nil
		}
	}
	return errors.New("the screen never showed " + text + ":\n" + s.frame())
}

// shows waits until the window shows a text.
func (s *pane) shows(text string) error {
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); pause() {
		if strings.Contains(s.window.Text(), text) {
			return nil
		}
	}
	return errors.New("the window never showed " + text)
}

func (s *pane) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.String()
}

func (s *pane) await(text string) bool {
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); pause() {
		s.mu.Lock()
		i := bytes.Index(s.buf.Bytes()[s.seen:], []byte(text))
		if i >= 0 {
			s.seen += i + len(text)
		}
		s.mu.Unlock()
		if i >= 0 {
			return true
		}
	}
	return false
}
