// Package machine runs stretches of sessions on this machine, with the program coven in a clone of the repository.
//
// coven keeps the session on the git remote, and only the machine that can move its ref there goes on: a machine that was cut off or asleep is
// refused. So nothing here must be exact: if a heartbeat is late, two machines may work on a session for a while, and one of them lands it.
package machine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"go.temporal.io/sdk/activity"

	"github.com/coven-run/coven/distributed/session"
)

// A Machine runs sessions of one repository.
type Machine struct {
	Name       string
	Repository string        // as in a session.Task
	Dir        string        // clone
	Remote     string        // name of the remote that keeps the sessions
	Coven      string        // program
	Grace      time.Duration // for a session to stop after it was interrupted; then its processes are killed
	Places     *Places
	Park       chan struct{} // closed to interrupt all sessions, which other machines then continue
	Log        func(format string, args ...any)
	Check      func(ctx context.Context) error // before each session: the clone may have another remote than at the start
	// Turn waits until it is the turn of a session to land on a branch. The turn lasts until release is called.
	Turn   func(ctx context.Context, t session.Task, branch string) (release func())
	Limits Limits
}

// Stretch is the activity of package session.
func (m *Machine) Stretch(ctx context.Context, t session.Task) (session.Stop, error) {
	if t.Repository != m.Repository { // it has a queue of its own
		return session.Stop{}, fmt.Errorf("this machine does not serve %s", t.Repository)
	}
	seat := m.Places.seat(t.Cost)
	defer seat.leave()
	if reason, sits := m.sit(ctx, seat, t.Heartbeat); !sits {
		return session.Stop{Status: session.Interrupted, Reason: reason, Machine: m.Name}, ctx.Err()
	}
	if err := m.Check(ctx); err != nil {
		m.Log("%s: %v", t.Task, err) // the server gets no text
		return session.Stop{}, errors.New("this machine cannot run sessions")
	}
	begun := time.Now()
	m.Log("%s: begin", t.Task)
	s, err := m.stretch(ctx, t)
	if !s.Until.IsZero() {
		s.Left = time.Until(s.Until)
	}
	switch s.Machine = m.Name; {
	case err != nil:
		m.Log("%s: %v", t.Task, err)
	case s.Over:
		m.Log("%s: over after %s", t.Task, time.Since(begun).Round(time.Millisecond))
	default:
		m.Log("%s: %s %s after %s", t.Task, s.Status, s.Reason, time.Since(begun).Round(time.Millisecond))
	}
	return s, err
}

// sit waits until a session can begin, and reports whether it can, or the reason. One that needs a single place does not wait: two queues had a session for the last one, and
// another machine may have more.
func (m *Machine) sit(ctx context.Context, s *seat, heartbeat time.Duration) (reason string, sits bool) {
	beat := time.NewTicker(max(heartbeat/4, time.Millisecond))
	defer beat.Stop()
	for {
		begun, changed := s.begin()
		switch {
		case begun:
			return "", true
		case s.cost == 1:
			return session.NoPlace, false
		}
		select {
		case <-changed:
		case <-beat.C:
			activity.RecordHeartbeat(ctx)
		case <-m.Park:
			return "", false
		case <-ctx.Done():
			return "", false
		}
	}
}

func (m *Machine) stretch(ctx context.Context, t session.Task) (session.Stop, error) {
	cmd := exec.Command(m.Coven, "resume", "--remote", m.Remote, "--worker", "--", t.Task) //nolint:gosec,noctx // it is coven; see wait
	answers, err := cmd.StdinPipe()
	if err != nil {
		return session.Stop{}, err
	}
	talk := &talk{answers: answers, turn: func(ctx context.Context, branch string) func() { return m.Turn(ctx, t, branch) }, limits: m.Limits}
	defer talk.end()
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = m.Dir, environ(), talk, talk, &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = m.Grace // a program of a task may hold the output open
	if err := cmd.Start(); err != nil {
		m.Log("%s: %v", t.Task, err) // the server gets no paths
		return session.Stop{}, errors.New("coven does not start")
	}
	err = m.wait(ctx, cmd, t.Heartbeat)
	if ctx.Err() != nil {
		return session.Stop{}, ctx.Err()
	}
	if err == nil || errors.Is(err, exec.ErrWaitDelay) {
		err = errNoState
	}
	s, problem := parse(talk.tail(), err)
	if problem != "" {
		m.Log("%s: %s", t.Task, problem) // the server gets no text of coven
		return s, fmt.Errorf("coven resume did not run: %w", err)
	}
	return s, nil
}

// wait waits for a coven to end, and reports to the server that it runs. It interrupts the coven if the session was recalled, or moved to
// another machine, or is to be parked.
func (m *Machine) wait(ctx context.Context, cmd *exec.Cmd, heartbeat time.Duration) error {
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	beat := time.NewTicker(max(heartbeat/4, time.Millisecond))
	defer beat.Stop()
	done, park, kill := ctx.Done(), m.Park, (<-chan time.Time)(nil)
	stop := func() {
		_ = cmd.Process.Signal(syscall.SIGINT)
		kill, done, park = time.After(m.Grace), nil, nil
	}
	for {
		activity.RecordHeartbeat(ctx)
		select {
		case err := <-ended:
			return err
		case <-beat.C:
		case <-done:
			stop()
		case <-park:
			stop()
		case <-kill:
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		}
	}
}

var errNoState = errors.New("it printed no state")

// parse reads how a stretch ended from the last line that coven printed. Without it, it returns the problem.
func parse(output string, ended error) (s session.Stop, problem string) {
	output = strings.TrimSpace(output)
	last := output[strings.LastIndexByte(output, '\n')+1:]
	if json.Unmarshal([]byte(last), &s) == nil && (s.Over || s.Status != "") {
		return s, ""
	}
	if lines := strings.Split(output, "\n"); len(lines) > 1 && strings.HasPrefix(last, "  next: ") {
		last = lines[len(lines)-2]
	}
	return s, fmt.Sprintf("coven resume: %v: %.300s", ended, last)
}

// environ returns the environment of coven: that of this process, without the connection to the server.
func environ() []string {
	var env []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "TEMPORAL_") {
			env = append(env, v)
		}
	}
	return env
}
