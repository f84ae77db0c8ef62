package handover

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"time"

	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/file/regularfile"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/text/shellword"
	"github.com/coven-run/coven/worktree/live"
)

// silentFile has the times, by the names of remotes, at which these did not answer: a JSON object. It is relative to the project.
const silentFile = ".coven/run/silent-remotes.json"

// maxSilent limits the size of silentFile in bytes.
const maxSilent = 64 << 10

const (
	patience   = time.Second      // a remote that fails earlier costs nothing
	silentTime = 30 * time.Second // how long Mirror does not ask a remote that did not answer
)

// tipsOf returns the tips of a remote, as live.Tips does. If the remote has just let a command wait, tipsOf does not ask.
func tipsOf(ctx context.Context, p *project.Project, name string) (map[string]string, error) {
	file, began := filepath.Join(p.Repo.Root, silentFile), p.Env.Now()
	times := map[string]time.Time{}
	if content, err := regularfile.ReadIn(p.Repo.Root, silentFile, maxSilent); err == nil {
		_ = json.Unmarshal(content, &times) // a damaged one is replaced
	}
	if ago := began.Sub(times[name]); ago >= 0 && ago < silentTime {
		return nil, exit.Personf("git ls-remote "+shellword.Word(name), "%s did not answer %s ago", name, ago.Round(time.Second))
	}
	tips, err := live.Tips(ctx, p.Repo, name)
	now := p.Env.Now()
	if err != nil && now.Sub(began) >= patience && !errors.Is(ctx.Err(), context.Canceled) {
		if times == nil {
			times = map[string]time.Time{}
		}
		times[name] = now
		if content, err := json.Marshal(times); err == nil {
			_ = regularfile.Replace(file, content, 0o600) // otherwise the next command waits, too
		}
	}
	return tips, Unreachable(p, name, err)
}
