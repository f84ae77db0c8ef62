package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/creack/pty"

	"github.com/coven-run/coven/internal/fake/fakescreen"
)

// The terminal of the picture. It has as many rows as the run prints, and more.
const (
	pictureColumns = 100
	pictureRows    = 100
	question       = "[a]pprove"
	patience       = 5 * time.Minute
)

// draw runs one task on a terminal, approves its change, and writes the screen as SVG.
func (d *demo) draw(ctx context.Context, file string) error {
	screen, err := d.record(ctx, "coven", "run", "-p", "add a script that says goodbye")
	if err != nil {
		return err
	}
	if err := os.WriteFile(file, []byte(svg(screen)), 0o644); err != nil { //nolint:gosec // a picture for all
		return fmt.Errorf("draw the picture: %w", err)
	}
	return nil
}

// record runs a command of coven on a terminal, answers its question with a, and returns
// the rows of the screen, below the command.
func (d *demo) record(ctx context.Context, name string, args ...string) ([]string, error) {
	path, err := d.find(name)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Dir, cmd.Env = d.repo, append(d.env, "TERM=xterm", "LANG=C.UTF-8")
	terminal, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: pictureRows, Cols: pictureColumns})
	if err != nil {
		return nil, fmt.Errorf("start coven on a terminal: %w", err)
	}
	defer terminal.Close() //nolint:errcheck // coven has ended
	window := fakescreen.New(pictureColumns, pictureRows)
	done := make(chan struct{})
	go answer(terminal, window, done)
	_, _ = io.Copy(window, terminal) // ends with EIO when coven has closed its terminal
	close(done)
	if err := cmd.Wait(); err != nil {
		return nil, fmt.Errorf("%s: %w; the screen:\n%s", commandLine(name, args), err, window.Text())
	}
	rows := strings.Split(strings.TrimRight(window.Text(), "\n"), "\n")
	return append([]string{"$ " + commandLine(name, args)}, rows...), nil
}

// answer types a while the question is on the screen: keys that come before it is read are
// discarded.
func answer(terminal io.Writer, window *fakescreen.Window, done <-chan struct{}) {
	ticks := time.NewTicker(100 * time.Millisecond)
	defer ticks.Stop()
	for {
		select {
		case <-done:
			return
		case <-ticks.C:
			if strings.Contains(window.Text(), question) {
				_, _ = io.WriteString(terminal, "a") // if coven has ended, nothing reads it
			}
		}
	}
}
