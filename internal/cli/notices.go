package cli

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/coven-run/coven/internal/board"
	"github.com/coven-run/coven/internal/control"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/terminal/notice"
)

// notices tells a person who looks elsewhere that tasks of this command need them. A nil one tells nothing.
type notices struct {
	app    *App
	root   string // of the project
	sender *notice.Sender
	batch  *notice.Batch

	mu     sync.Mutex
	titles map[string]string
	last   time.Time // when the person started the command, or pressed a key
}

// Sender returns a sender of notices for a terminal, or nil if the output is none.
func (a *App) Sender(p *project.Project) *notice.Sender {
	env := notice.Of(a.Getenv, p.Hidden)
	env.First = func(edge string) bool { return notice.Announce(p.Repo.Root, edge) }
	s := notice.New(p.Config.Notices, env)
	if !a.Terminal || a.Dumb() || !s.Enabled() {
		return nil
	}
	return s
}

// newNotices returns the notices of a command.
func (a *App) newNotices(c *control.Controller, asJSON bool) *notices {
	s := a.Sender(c.Project)
	if s == nil || asJSON {
		return nil
	}
	n := &notices{app: a, root: c.Project.Repo.Root, sender: s, titles: map[string]string{}, last: a.Now()}
	n.batch = &notice.Batch{Window: s.Window(), Deliver: n.deliver}
	return n
}

// deliver shows notices between the lines of running tasks.
func (n *notices) deliver(all []notice.Notice) {
	if sequence := n.sender.Deliver(context.Background(), all); sequence != "" {
		n.app.shown.Later(func() { _, _ = io.WriteString(n.app.Out, sequence) }) // a lost terminal needs no notice
	}
}

func (n *notices) name(task, title string) {
	if n == nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.titles[task] = title
}

// acted records that the person has pressed a key.
func (n *notices) acted() {
	if n == nil {
		return
	}
	n.mu.Lock()
	n.last = n.app.Now()
	n.mu.Unlock()
	n.batch.Clear()
}

// ended announces a session that has stopped and needs a person.
func (n *notices) ended(o control.Outcome) {
	if n == nil || o.Status == session.Waiting && slices.Contains([]event.WaitReason{event.WaitLimit, event.WaitDependency, event.WaitMessage}, o.Reason) {
		return
	}
	state := string(o.Status)
	if o.Reason != "" {
		state += fmt.Sprintf(" (%s)", o.Reason)
	}
	edge := ""
	if v, err := session.Load(filepath.Join(n.root, session.Dir, o.Session)); err == nil {
		edge = board.Edge(v)
	}
	n.announce(notice.Notice{Task: o.Task, Status: string(o.Status), State: state, Text: o.Detail, Edge: edge})
}

// see announces the question of an agent, until it is answered.
func (n *notices) see(e event.Event) {
	if n == nil {
		return
	}
	switch e.Type {
	case event.PermissionRequested:
		q := event.As[event.Approval](e)
		n.announce(notice.Notice{
			Task: e.Task, Status: string(session.Waiting), State: fmt.Sprintf("%s (%s)", session.Waiting, event.WaitApproval),
			Text: q.Agent + " asks for approval: " + q.Tool + " " + q.Subject, Edge: board.ApprovalEdge(e.Session, q.N),
		})
	case event.PermissionAnswered:
		n.batch.Drop(e.Task)
	}
}

func (n *notices) announce(one notice.Notice) {
	n.mu.Lock()
	one.Title = n.titles[one.Task]
	last := n.last
	n.mu.Unlock()
	switch {
	case !n.sender.Wants(one.Status):
	case n.sender.Attentive(last, n.app.Now()):
		n.sender.Seen(one)
	default:
		n.batch.Add(one)
	}
}

// close delivers the collected notices.
func (n *notices) close() {
	if n != nil {
		n.batch.Flush()
	}
}
