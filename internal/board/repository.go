package board

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/coven-run/coven/internal/budget"
	"github.com/coven-run/coven/internal/control"
	"github.com/coven-run/coven/internal/control/handover"
	"github.com/coven-run/coven/internal/process/clock"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/session/spending"
)

// Repository supplies the cards of a repository to a face, and starts the commands of the face.
type Repository struct {
	Context context.Context //nolint:containedctx // of the face
	Project *project.Project
	Program string // path of coven
	Dir     string // working directory of its commands
	Clock   func() time.Time
	// Explain sets the reasons of those sessions that wait for workers although no machine can run them. Without it, they look like the others.
	Explain func(context.Context, []session.View)

	watcher *fsnotify.Watcher
	stop    func() // ends the look at the remotes

	unserved atomic.Pointer[map[string]reason] // sessions that wait for workers in vain, by ID
	told     chan struct{}                     // they have changed
}

// Watch begins to watch the records, and hides secrets from then on. Close ends it.
func (r *Repository) Watch() (err error) {
	if err := control.HideSecrets(r.Project); err != nil {
		return err
	}
	if r.watcher, err = fsnotify.NewWatcher(); err != nil {
		return fmt.Errorf("watch the sessions: %w", err)
	}
	r.Project.Finder.Follow()
	r.watchNew()
	r.told = make(chan struct{}, 1)
	ctx, cancel := context.WithCancel(r.Context)
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.mirror(ctx)
	}()
	r.stop = func() { cancel(); <-done }
	return nil
}

// Close ends the watch.
func (r *Repository) Close() error {
	r.stop()
	return r.watcher.Close()
}

// mirrorPause is the time between two looks at the remotes that keep sessions.
const mirrorPause = 15 * time.Second

// mirror updates the records of sessions that other machines have continued, until ctx ends. Without an answer of a remote, they stay as they are.
func (r *Repository) mirror(ctx context.Context) {
	for timer := time.NewTimer(0); ; timer.Reset(clock.ToReal(mirrorPause)) {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			_ = handover.Mirror(ctx, r.Project)
			r.explain(ctx)
		}
	}
}

// explain asks why sessions wait for workers.
func (r *Repository) explain(ctx context.Context) {
	if r.Explain == nil {
		return
	}
	views, err := control.CurrentSessions(r.Project)
	if err != nil {
		return
	}
	views = slices.DeleteFunc(views, func(v session.View) bool { return !v.WaitsForWorker() })
	explained := slices.Clone(views)
	r.Explain(ctx, explained)
	unserved := map[string]reason{}
	for i, v := range explained {
		if v.Detail != views[i].Detail {
			unserved[v.ID] = reason{v.Detail, v.Next}
		}
	}
	if before := r.unserved.Swap(&unserved); before != nil && maps.Equal(*before, unserved) || before == nil && len(unserved) == 0 {
		return
	}
	select {
	case r.told <- struct{}{}:
	default: // the face has not yet looked
	}
}

// watchNew watches the directories that did not exist before. Watching one twice does nothing.
func (r *Repository) watchNew() {
	root := r.Project.Repo.Root
	dirs := []string{filepath.Join(root, ".coven"), filepath.Join(root, session.Dir), filepath.Join(root, ".beads")}
	ids, _ := session.IDs(root) // without sessions there is nothing to watch
	for _, id := range ids {
		dirs = append(dirs, filepath.Join(root, session.Dir, id))
	}
	for _, dir := range dirs {
		_ = r.watcher.Add(dir) // it may be gone, or appear later
	}
}

// settle is the time in which further changes belong to the first one.
const settle = 30 * time.Millisecond

// Changed waits until the cards may have changed. It is for one caller.
func (r *Repository) Changed() error {
	select {
	case _, open := <-r.watcher.Events:
		if !open {
			return context.Canceled
		}
	case <-r.told:
	case err := <-r.watcher.Errors: // such as too many changes to name each
		if err == nil {
			return context.Canceled
		}
	}
	for timer := time.NewTimer(settle); ; {
		select {
		case <-r.watcher.Events:
		case <-timer.C:
			r.watchNew()
			return nil
		}
	}
}

// Cards returns the present cards.
func (r *Repository) Cards() ([]Card, error) {
	var unserved map[string]reason
	if known := r.unserved.Load(); known != nil {
		unserved = *known
	}
	return of(r.Context, r.Project, r.Clock(), unserved)
}

// All returns the cards of all sessions, the newest first.
func (r *Repository) All() ([]Card, error) {
	views, err := control.Sessions(r.Project)
	if err != nil {
		return nil, err
	}
	cards := make([]Card, len(views))
	for i, v := range views {
		cards[i] = cardOf(v, nil, r.Clock())
	}
	return cards, nil
}

// Charges returns the usage of agents at or after a time, without damaged sessions.
func (r *Repository) Charges(since time.Time) ([]spending.Charge, error) {
	all, broken := r.Project.Ledger.Since(since)
	_, err := session.DamagedIn(broken)
	return all, err
}

// Today returns the budget of the repository for today, with its usage. Without a limit, the usage is unknown.
func (r *Repository) Today() (budget.Day, error) { return r.Project.Ledger.Today() }

// ErrNoTask reports a task that has no session and is not on the board.
var ErrNoTask = errors.New("no task with this ID is on the board or in the sessions")

// Find returns the card of a task by its ID, of its newest session if it is not on the board. The error may be ErrNoTask.
func (r *Repository) Find(task string) (Card, error) {
	cards, err := r.Cards()
	if err != nil {
		return Card{}, err
	}
	if i := slices.IndexFunc(cards, func(c Card) bool { return c.Task == task }); i >= 0 {
		return cards[i], nil
	}
	v, err := r.Project.Find(r.Context, task)
	if errors.As(err, new(*project.NoSessionError)) || err == nil && v.Task != task {
		return Card{}, ErrNoTask
	}
	return cardOf(v, nil, r.Clock()), err
}

// Now returns the time.
func (r *Repository) Now() time.Time { return r.Clock() }

// maxShown limits the output that Output returns.
const maxShown = 64 << 20

// Output runs a command line of coven that only prints, and returns its output. It ends with the face.
func (r *Repository) Output(args []string) (string, error) {
	ctx, cancel := context.WithCancel(r.Context)
	defer cancel()
	cmd := exec.CommandContext(ctx, r.Program, args...) //nolint:gosec // it is coven
	cmd.Dir, cmd.WaitDelay = r.Dir, time.Second
	reader, writer, err := os.Pipe()
	if err != nil {
		return "", err
	}
	defer reader.Close() //nolint:errcheck // read only
	cmd.Stdout, cmd.Stderr = writer, writer
	err = cmd.Start()
	if err := errors.Join(err, writer.Close()); err != nil {
		return "", err
	}
	text, err := io.ReadAll(io.LimitReader(reader, maxShown))
	if err != nil || len(text) == maxShown {
		cancel() // the rest is not shown
		return string(text), errors.Join(err, cmd.Wait())
	}
	return string(text), cmd.Wait()
}

// maxOutput limits the end of an output that is shown.
const maxOutput = 4 << 10

// Start starts a command line of coven, and returns a function that waits for the end of its output. The command has a session
// of its own, so that it outlives the face, and no terminal.
func (r *Repository) Start(args []string) (func() (string, error), error) {
	output, err := os.CreateTemp("", "coven-face-")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(output.Name()); err != nil {
		return nil, errors.Join(err, output.Close())
	}
	cmd := exec.Command(r.Program, args...) //nolint:gosec,noctx // it must outlive the face
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = r.Dir, output, output, &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, output.Close())
	}
	return func() (string, error) {
		err := cmd.Wait()
		info, statErr := output.Stat()
		if statErr != nil {
			return "", errors.Join(err, statErr)
		}
		end, readErr := io.ReadAll(io.NewSectionReader(output, max(info.Size()-maxOutput, 0), maxOutput))
		return string(end), errors.Join(err, readErr, output.Close())
	}, nil
}
