package handover

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/worktree/live"
)

// maxMail limits the length of a message in bytes.
const maxMail = 64 << 10

// mail is a message of a person to the agent of a session on another machine.
type mail struct {
	Text string    `json:"text"`
	By   string    `json:"by"`
	Time time.Time `json:"time"`
}

// Send stores a message on the remote for the agent of a session that another machine runs. That machine fetches it at the end of the step, or after some minutes.
func Send(ctx context.Context, p *project.Project, v session.View, text string) error {
	text = p.Hidden(text)
	switch {
	case strings.TrimSpace(text) == "":
		return exit.Usagef("", "the message is empty")
	case len(text) > maxMail:
		return exit.Usagef("", "the message has more than %d bytes", maxMail)
	}
	if err := stillAgreed(ctx, p.Repo, v.Info.Remote, v.Task); err != nil {
		return err
	}
	content, err := json.Marshal(mail{Text: text, By: p.Env.User(), Time: p.Env.Now()})
	if err != nil {
		return err
	}
	return unreachable(p, v.Info.Remote, live.Send(ctx, p.Repo, v.Info.Remote, v.Task, v.ID, uuid.NewString(), content))
}

// deliver moves the messages for the session from the remote to its inbox. If the remote does not answer, they stay there until the next time. It is
// called when this machine is known to have the session.
func (k *Keeper) deliver(ctx context.Context) {
	all, err := live.Mails(ctx, k.Repo, k.Remote, k.Task)
	if err != nil || len(all) == 0 {
		return
	}
	var found []mail
	for _, one := range all {
		m := mail{}
		if one.Session == k.Session.ID && len(one.Content) <= 2*maxMail && json.Unmarshal(one.Content, &m) == nil && m.Text != "" { // else it is for an earlier session, or damaged
			found = append(found, m)
		}
	}
	slices.SortFunc(found, func(a, b mail) int { return cmp.Or(a.Time.Compare(b.Time), strings.Compare(a.Text, b.Text)) })
	for _, m := range found {
		request := session.Request{Kind: session.KindMessage, Text: m.Text, By: m.By, Time: k.Session.Now()}
		if _, err := session.Ask(k.Repo.Root, k.Session.ID, request); err != nil {
			return
		}
	}
	_ = live.DropMails(ctx, k.Repo, k.Remote, all) // otherwise they come twice
}
