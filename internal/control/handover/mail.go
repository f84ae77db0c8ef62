package handover

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/process/failpoint"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/text/oneline"
	"github.com/coven-run/coven/worktree/live"
	"github.com/coven-run/coven/worktree/remote"
)

// mail is a message of a person to the agent of a session on another machine, or the answer to its question.
type mail struct {
	Text   string                `json:"text,omitempty"`
	Answer *event.ApprovalAnswer `json:"answer,omitempty"`
	Asked  time.Time             `json:"asked,omitzero"` // time of the question: another session of the machine may use its number again
	By     string                `json:"by"`
	Time   time.Time             `json:"time"`
}

// Send stores a message on the remote for the agent of a session that another machine runs. That machine fetches it at the end of the step, or after some minutes.
func Send(ctx context.Context, p *project.Project, v session.View, text string) error {
	if strings.TrimSpace(text) == "" {
		return exit.Usagef("", "the message is empty")
	}
	return post(ctx, p, v, uuid.NewString(), mail{Text: p.Hidden(text)})
}

// Answer stores the answer to a question of an agent on the remote of a session that another machine runs. That machine fetches it after some seconds, if the
// question is still open.
func Answer(ctx context.Context, p *project.Project, v session.View, q session.Approval, answer event.ApprovalAnswer) error {
	answer.N, answer.Reason = q.N, p.Hidden(answer.Reason)
	if m := answer.Modified; m != nil && p.Hidden(string(m.After)) != string(m.After) {
		return exit.Usagef("coven approvals list", "the parameters contain a known secret, which %s would keep", v.Info.Remote)
	}
	err := post(ctx, p, v, fmt.Sprintf("answer-%d-%d", q.N, q.Asked.UnixNano()), mail{Answer: &answer, Asked: q.Asked})
	if errors.As(err, new(*remote.MovedError)) {
		return exit.Failedf("coven approvals list", "question %d of %s has an answer already, which %s has not received yet", q.N, v.Task, v.Away.Machine)
	}
	return err
}

// post stores a mail with an ID on the remote of a session.
func post(ctx context.Context, p *project.Project, v session.View, id string, m mail) error {
	m.By, m.Time = p.Env.User(), p.Env.Now()
	content, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if len(content) > live.MaxMail {
		return exit.Usagef("", "the message has more than %d bytes", live.MaxMail)
	}
	if err := stillAgreed(ctx, p.Repo, v.Info.Remote, v.Task); err != nil {
		return err
	}
	err = live.Send(ctx, p.Repo, v.Info.Remote, v.Task, v.ID, id, content)
	if errors.As(err, new(*remote.MovedError)) {
		return err
	}
	return Unreachable(p, v.Info.Remote, err)
}

// maxTries limits how often a Keeper tries to fetch a mail.
const maxTries = 3

// maxRounds limits how many times a Keeper fetches mail in succession.
const maxRounds = 10

// deliver moves mail for the session from the remote to its inbox. If the remote does not answer, it stays there until the next time. It is
// called when this machine is known to have the session.
func (k *Keeper) deliver(ctx context.Context, all []live.Mail) {
	k.delivering.Lock()
	defer k.delivering.Unlock()
	for range maxRounds {
		fetched := live.FetchMails(ctx, k.Repo, k.Remote, all)
		if len(fetched) == 0 || ctx.Err() != nil || k.receive(ctx, fetched) != nil {
			return
		}
		all = all[len(fetched):]
	}
}

// receive moves mail to the inbox of the session, and deletes it on the remote.
func (k *Keeper) receive(ctx context.Context, all []live.Mail) error {
	var found []session.Request
	var done []live.Mail
	for _, one := range all {
		if !one.Fetched {
			if k.tries[one.ID]++; k.tries[one.ID] < maxTries {
				continue
			}
		}
		done = append(done, one)
		if r, ok := k.request(one); ok {
			found = append(found, r)
		}
	}
	slices.SortFunc(found, func(a, b session.Request) int { return cmp.Or(a.Time.Compare(b.Time), strings.Compare(a.ID, b.ID)) })
	for _, r := range found {
		r.Time = k.Session.Now() // the clock of the other machine may be wrong
		if _, err := session.Ask(k.Repo.Root, k.Session.ID, r); err != nil {
			return err
		}
		failpoint.Point("mail.delivered")
	}
	err := live.DropMails(ctx, k.Repo, k.Remote, done) // otherwise they come again, which changes nothing
	failpoint.Point("mail.dropped")
	return err
}

// request returns the request of a mail. ok is false if there is none, if it is for an earlier session, or if the question that it answers is not open.
func (k *Keeper) request(one live.Mail) (r session.Request, ok bool) {
	m := mail{}
	if one.Session != k.Session.ID || json.Unmarshal(one.Content, &m) != nil {
		return r, false
	}
	r = session.Request{ID: one.ID, Kind: session.KindMessage, Text: m.Text, By: oneline.Of(m.By), Time: m.Time}
	if m.Answer == nil {
		return r, m.Text != ""
	}
	r.Kind, r.Text, r.Answer = session.KindAnswer, "", m.Answer
	switch m.Answer.Answer {
	case event.Approved, event.Denied:
		m.Answer.Modified = nil
	case event.Modified:
		if m.Answer.Modified == nil {
			return r, false
		}
	default: // only coven gives other answers
		return r, false
	}
	v, err := k.Session.View()
	return r, err == nil && slices.ContainsFunc(v.OpenApprovals(), func(q session.Approval) bool {
		return q.N == m.Answer.N && q.Asked.Equal(m.Asked)
	})
}
