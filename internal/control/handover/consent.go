package handover

import (
	"context"
	"slices"
	"strings"

	"github.com/coven-run/coven/internal/control/consent"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/text/shellword"
	"github.com/coven-run/coven/worktree"
	"github.com/coven-run/coven/worktree/live"
	"github.com/coven-run/coven/worktree/remote"
)

// consentFile has a line for each address on which the user agrees to keep sessions.
const consentFile = "sessions-on-remotes"

// CheckConsent returns an error unless the user agrees to keep sessions on a remote. With accepted, the user does; otherwise it calls ask with the reason, unless
// that is nil. next is the command that agrees. The consent is recorded for the address of the remote.
func CheckConsent(ctx context.Context, p *project.Project, name string, accepted bool, ask func(ctx context.Context, gap string) (bool, error), next string) error {
	known, address, err := agreed(ctx, p.Repo, name)
	if err != nil || slices.Contains(known, address) {
		return err
	}
	gap := "all who may fetch from " + name + " (" + address + ") can read the sessions that it keeps: prompts, answers, output and snapshots, with known secrets masked"
	if !accepted && ask != nil {
		if accepted, err = ask(ctx, gap); err != nil {
			return err
		}
	}
	if !accepted {
		return exit.Usagef(next, "%s", gap)
	}
	return consent.Record(p.Repo.Root, consentFile, strings.Join(append(known, address), "\n")+"\n")
}

// agreed returns the addresses on which the user agrees to keep sessions, and the present address of a remote.
func agreed(ctx context.Context, r *worktree.Repo, name string) (known []string, address string, err error) {
	if address, err = remote.Address(ctx, r, name); err != nil {
		return nil, "", err
	}
	text, _, err := consent.Read(r.Root, consentFile)
	return slices.Collect(strings.FieldsFuncSeq(text, func(c rune) bool { return c == '\n' })), address, err
}

// stillAgreed returns an error if the user has not agreed to keep sessions at the present address of a remote.
func stillAgreed(ctx context.Context, r *worktree.Repo, name, task string) error {
	known, address, err := agreed(ctx, r, name)
	if err == nil && !slices.Contains(known, address) {
		err = exit.Usagef("coven resume "+shellword.Word(task)+" --yes --remote "+shellword.Word(name), "you have not agreed to keep sessions on %s (%s)", name, address)
	}
	return err
}

// CheckStart returns an error if a remote keeps a session of a task already, at a tip, or if the remote lacks the commit from which a new session would start: such
// commits are not searched for secrets. It ends a session on the remote that was rejected, or that ended here while the remote did not answer.
func CheckStart(ctx context.Context, p *project.Project, name, task, tip string, target worktree.Target, base string) error {
	in, err := remote.Contains(ctx, p.Repo, target.Tip, base)
	if err == nil && !in {
		err = exit.Usagef("git push "+shellword.Word(name)+" HEAD", "--base %.12s is not on %s, where the session would be kept", base, target.Branch)
	}
	if err != nil || tip == "" {
		return err
	}
	_, v, err := fetch(ctx, p, name, task, tip)
	if err != nil {
		return err
	}
	known, err := live.Known(ctx, p.Repo, task)
	if err != nil {
		return err
	}
	here, err := p.Finder.OfTask(task)
	if v.Rejected || err == nil && known == tip && here.ID == v.ID && !here.Live() {
		return Unreachable(p, name, live.Drop(ctx, p.Repo, name, task, tip))
	}
	if err := held(p, name, v); err != nil {
		return err
	}
	return exit.Personf("coven resume "+shellword.Word(task)+" --remote "+shellword.Word(name), "%s keeps a session of task %s", name, task)
}
