package page

import (
	"context"
	"time"

	"github.com/coven-run/coven/internal/board"
	"github.com/coven-run/coven/internal/cli"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/terminal/notice"
)

// announcer tells a person who has no visible page that tasks need them.
type announcer struct {
	sender    *notice.Sender // nil for none
	source    *board.Repository
	edges     board.Edges
	changes   chan struct{} // full if the cards may have changed
	sequences chan string   // for the terminal
}

// newAnnouncer returns an announcer that knows the present cards.
func newAnnouncer(a *cli.App, p *project.Project, source *board.Repository) *announcer {
	n := &announcer{sender: a.Sender(p), source: source, changes: make(chan struct{}, 1), sequences: make(chan string)}
	if n.sender != nil {
		n.next(true)
	}
	return n
}

// changed reports a change of the cards. It does not block.
func (n *announcer) changed() {
	select {
	case n.changes <- struct{}{}:
	default: // it is reported already
	}
}

// run sends notices until ctx ends.
func (n *announcer) run(ctx context.Context, watched func() bool) {
	if n.sender == nil {
		return
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-n.changes:
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(n.sender.Window()): // further changes belong to this one
		}
		all := n.next(watched())
		if sequence := n.sender.Deliver(ctx, all); sequence != "" {
			select {
			case <-ctx.Done():
			case n.sequences <- sequence:
			}
		}
	}
}

// next returns the notices of the tasks that begin to need a person. A person who sees the page needs none.
func (n *announcer) next(seen bool) (all []notice.Notice) {
	cards, err := n.source.Cards()
	if err != nil {
		return nil // the page shows it
	}
	for _, c := range n.edges.Next(cards) {
		switch one := c.Notice(); {
		case !n.sender.Wants(one.Status):
		case seen:
			n.sender.Seen(one)
		default:
			all = append(all, one)
		}
	}
	return all
}
