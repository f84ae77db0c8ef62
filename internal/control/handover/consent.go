package handover

import (
	"context"
	"slices"
	"strings"

	"github.com/coven-run/coven/internal/control/consent"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/text/shellword"
	"github.com/coven-run/coven/worktree/remote"
)

// consentFile has a line for each address on which the user agrees to keep sessions.
const consentFile = "sessions-on-remotes"

// CheckConsent returns an error unless the user agrees to keep sessions on a remote. With accepted, the user does; otherwise it calls ask with the reason, unless
// that is nil. next is the command that agrees. The consent is recorded for the address of the remote.
func CheckConsent(ctx context.Context, p *project.Project, name string, accepted bool, ask func(ctx context.Context, gap string) (bool, error), next string) error {
	address, err := remote.Address(ctx, p.Repo, name)
	if err != nil {
		return err
	}
	known, _, err := consent.Read(p.Repo.Root, consentFile)
	if err != nil || slices.Contains(strings.Split(known, "\n"), address) {
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
	return consent.Record(p.Repo.Root, consentFile, known+address+"\n")
}

// CheckFree returns an error if a remote keeps a session of a task already.
func CheckFree(ctx context.Context, p *project.Project, name, task string) error {
	v, ok, err := Find(ctx, p, name, task)
	if err != nil || !ok {
		return err
	}
	if err := held(p, name, v); err != nil {
		return err
	}
	return exit.Personf("coven resume "+shellword.Word(task)+" --remote "+shellword.Word(name), "%s keeps a session of task %s", name, task)
}
