// Package checklock keeps the checks of different tasks apart. It serves all coven processes of a user on a machine.
//
// The locks are files in one directory, which their holders lock with flock. The kernel therefore releases those of a
// killed process.
//
//   - lock-NAME is held while a check with this lock runs.
//   - gate is held for a moment by a check that enters, and for its whole run by one that runs alone. Such a check
//     waits in the gate until the others have ended, so that no new ones come in.
//   - running/ID exists for each running check that is not alone. It contains the check's holder and, one per line, those
//     of the other tasks whose checks ran at the same time: a check that enters adds its line to the files of the others,
//     and theirs to its own. This is exact for all processes, and costs as many short writes as checks run.
//
// They are acquired in this order, and a check that runs waits for nothing, so that there are no deadlocks.
package checklock

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Dir is the directory of a user's locks. It may be missing. Empty means that there is no place for it.
type Dir string

// Holder identifies a check that holds a lock.
type Holder struct {
	Task string `json:"task"`
	Repo string `json:"repo"` // the main checkout
	PID  int    `json:"pid"`
}

// Request describes a check that is about to run.
type Request struct {
	Holder Holder
	Lock   string // a name, or empty
	Alone  bool   // no other check may run at the same time
	// Waiting is called when the check has to wait, with the reason, and again when the reason changes.
	Waiting func(reason string) error
}

// Reservation is the right of a check to run. Its zero value holds nothing.
type Reservation struct {
	own     Holder
	files   []*os.File // in the order in which they were acquired
	running *os.File   // nil for a check that runs alone
}

// Reserve waits until a check may run. If the directory cannot be used, only a check that has no lock and need not be
// alone may run.
func (d Dir) Reserve(ctx context.Context, req Request) (*Reservation, error) {
	r := &Reservation{own: req.Holder}
	err := d.reserve(ctx, r, req)
	if err == nil {
		return r, nil
	}
	r.Release()
	if unusable := (*os.PathError)(nil); errors.As(err, &unusable) && req.Lock == "" && !req.Alone {
		return &Reservation{}, nil
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return nil, fmt.Errorf("keep a check apart from others: %w (locks are in $XDG_STATE_HOME/coven, by default ~/.local/state/coven)", err)
}

func (d Dir) reserve(ctx context.Context, r *Reservation, req Request) error {
	if d == "" {
		return &os.PathError{Op: "find", Path: "coven/locks", Err: errors.New("neither XDG_STATE_HOME nor HOME is set")}
	}
	if err := os.MkdirAll(d.path("running"), 0o700); err != nil {
		return err
	}
	if req.Lock != "" {
		err := d.acquire(ctx, r, "lock-"+req.Lock, req, func(h Holder) string {
			return "waits for lock " + req.Lock + ", held by " + h.name(r.own)
		})
		if err != nil {
			return err
		}
	}
	err := d.acquire(ctx, r, "gate", req, func(h Holder) string { return "waits for the check of " + h.name(r.own) + ", which runs alone" })
	if err != nil {
		return err
	}
	if req.Alone {
		return d.awaitOthers(ctx, r, req)
	}
	return d.enter(r)
}

func (d Dir) path(name string) string { return filepath.Join(string(d), name) }

// acquire adds the lock of a file to a reservation. The file names the holder, except the gate of a check that only
// enters: it waits for nothing, so that others need not say that they wait for it.
func (d Dir) acquire(ctx context.Context, r *Reservation, name string, req Request, reason func(Holder) string) error {
	f, err := os.OpenFile(d.path(name), os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600)
	if err != nil {
		return err
	}
	err = await(ctx, f, req.Waiting, func() string {
		holders, err := read(f)
		if err != nil || len(holders) == 0 {
			return ""
		}
		return reason(holders[0])
	})
	if err != nil {
		return err
	}
	r.files = append(r.files, f)
	if err := f.Truncate(0); err != nil { // a killed process left its name
		return err
	}
	if name == "gate" && !req.Alone {
		return nil
	}
	return add(f, r.own)
}

// awaitOthers waits until no check runs. r holds the gate.
func (d Dir) awaitOthers(ctx context.Context, r *Reservation, req Request) error {
	for {
		running, err := d.others()
		if err != nil || len(running) == 0 {
			return err
		}
		var names []string
		for _, o := range running {
			names = append(names, o.holder.name(r.own))
		}
		slices.Sort(names)
		first := running[0].file
		for _, o := range running[1:] {
			_ = o.file.Close()
		}
		reason := "waits to run alone, after the checks of " + strings.Join(slices.Compact(names), ", ")
		if err := await(ctx, first, req.Waiting, func() string { return reason }); err != nil {
			return err
		}
		_ = first.Close()
	}
}

// enter records that a check runs, in its own file and in those of the checks that run already. It leaves the gate.
func (d Dir) enter(r *Reservation) error {
	running, err := d.others()
	if err != nil {
		return err
	}
	f, err := os.OpenFile(d.path("running/"+rand.Text()), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	r.running, r.files = f, append(r.files, f)
	err = errors.Join(flock(f, unix.LOCK_EX), add(f, r.own))
	for _, o := range running {
		err = errors.Join(err, add(f, o.holder), add(o.file, r.own), o.file.Close())
	}
	gate := len(r.files) - 2
	err = errors.Join(err, r.files[gate].Close())
	r.files = slices.Delete(r.files, gate, gate+1)
	return err
}

// check is a running check.
type check struct {
	file   *os.File
	holder Holder
}

// others returns the running checks, and removes the files that killed processes left. The caller holds the gate.
func (d Dir) others() ([]check, error) {
	entries, err := os.ReadDir(d.path("running"))
	if err != nil {
		return nil, err
	}
	var running []check
	for _, e := range entries {
		path := d.path("running/" + e.Name())
		f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		holders, err := read(f)
		if ended := flock(f, unix.LOCK_EX|unix.LOCK_NB) == nil; ended || err != nil || len(holders) == 0 {
			_ = f.Close()
			if ended {
				_ = os.Remove(path)
			}
			continue
		}
		running = append(running, check{f, holders[0]})
	}
	return running, nil
}

// Beside returns the other tasks whose checks have run since the check was reserved, or nil.
func (r *Reservation) Beside() []string {
	if r.running == nil {
		return nil
	}
	holders, err := read(r.running)
	if err != nil {
		return nil // the result of the check counts
	}
	var names []string
	for _, h := range holders {
		if h.Task != r.own.Task || h.Repo != r.own.Repo {
			names = append(names, strings.TrimPrefix(h.name(r.own), "task "))
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Release ends the reservation.
func (r *Reservation) Release() {
	if r.running != nil {
		_ = os.Remove(r.running.Name()) // an unlocked file is removed later
	}
	for _, f := range slices.Backward(r.files) {
		if f != r.running {
			_ = f.Truncate(0) // the name is only informative
		}
		_ = f.Close()
	}
	r.files, r.running = nil, nil
}

// name describes a holder for another one.
func (h Holder) name(other Holder) string {
	if h.Repo == other.Repo {
		return "task " + h.Task
	}
	return "task " + h.Task + " in " + h.Repo
}

// look is the time between two looks at the reason of a wait.
const look = time.Second

// await locks a file. If it fails, it closes the file as soon as possible.
func await(ctx context.Context, f *os.File, waiting func(string) error, reason func() string) error {
	if flock(f, unix.LOCK_EX|unix.LOCK_NB) == nil {
		return nil
	}
	locked := make(chan error, 1)
	go func() { locked <- flock(f, unix.LOCK_EX) }()
	abandon := func() {
		go func() { // flock cannot be interrupted
			err := <-locked
			_ = errors.Join(err, f.Close())
		}()
	}
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	told := ""
	for {
		if why := reason(); why != "" && why != told {
			told = why
			if err := waiting(why); err != nil {
				abandon()
				return err
			}
		}
		select {
		case err := <-locked:
			return err
		case <-ctx.Done():
			abandon()
			return context.Cause(ctx)
		case <-ticker.C:
		}
	}
}

func flock(f *os.File, how int) error {
	for {
		err := unix.Flock(int(f.Fd()), how)
		if err == nil {
			return nil
		}
		if !errors.Is(err, unix.EINTR) {
			return &os.PathError{Op: "lock", Path: f.Name(), Err: err}
		}
	}
}

// add adds a holder to a file.
func add(f *os.File, h Holder) error {
	line, err := json.Marshal(h)
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n'))
	return err
}

// maxHolders limits the size of a file that is read, in bytes.
const maxHolders = 1 << 20

// read returns the holders in a file.
func read(f *os.File) ([]Holder, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	text := make([]byte, min(info.Size(), maxHolders))
	n, _ := f.ReadAt(text, 0) // a shorter file has just been truncated
	var holders []Holder
	for line := range bytes.Lines(text[:n]) {
		var h Holder
		if json.Unmarshal(line, &h) == nil {
			holders = append(holders, h)
		}
	}
	return holders, nil
}
