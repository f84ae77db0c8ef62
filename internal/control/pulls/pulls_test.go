package pulls

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coven-run/coven/internal/config"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/plugins/forge"
	"github.com/coven-run/coven/plugins/pluginerr"
	"github.com/coven-run/coven/runner"
	"github.com/coven-run/coven/worktree"
	"github.com/coven-run/coven/worktree/remote"
)

// host is a host in memory.
type host struct {
	mu     sync.Mutex
	pulls  map[int]forge.PullRequest
	polls  int
	asked  []forge.Query
	limit  forge.Limit
	err    error
	opened []forge.Request

	replyErr error
	acts     []string

	moved      string
	during     func() // is called by Merge
	unnumbered bool   // opens pull requests without a number
}

func (h *host) Forge(context.Context, string) (forge.Forge, error) { return h, nil }

func (h *host) Open(_ context.Context, r forge.Request) (forge.PullRequest, error) {
	h.opened = append(h.opened, r)
	if h.unnumbered {
		return forge.PullRequest{}, h.err
	}
	return forge.PullRequest{Number: 7, URL: "http://host/7"}, h.err
}

func (h *host) Poll(_ context.Context, q forge.Query) (forge.Report, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.polls++
	h.asked = append(h.asked, q)
	if h.err != nil {
		return forge.Report{}, h.err
	}
	report := forge.Report{Version: fmt.Sprint("v", h.polls), Limit: h.limit, Moved: h.moved}
	for _, k := range q.Known {
		if p, ok := h.pulls[k.Number]; ok && (p.Version == "" || p.Version != k.Version) {
			report.Changed = append(report.Changed, p)
		}
	}
	return report, nil
}

func (h *host) Log(context.Context, forge.Repository, forge.Check, int) (string, error) {
	return strings.Repeat("x", 20<<10) + "a token-secret in a log", nil
}

func (h *host) Rerun(_ context.Context, _ forge.Repository, c forge.Check) error {
	h.acts = append(h.acts, "rerun "+c.ID)
	return nil
}

func (h *host) Reply(_ context.Context, _ forge.Repository, r forge.Reply) error {
	h.acts = append(h.acts, "reply "+r.Text)
	return h.replyErr
}

func (h *host) Merge(_ context.Context, _ forge.Repository, m forge.Merge) (string, error) {
	if h.during != nil {
		h.during()
	}
	h.acts = append(h.acts, fmt.Sprintf("merge %d %s", m.Number, m.Head))
	return "", nil
}

// bench is a clone with a host whose clock stands still.
type bench struct {
	*Forge
	host *host
	now  time.Time
	dir  string
}

func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"}, args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func newBench(t *testing.T) *bench {
	t.Helper()
	top := t.TempDir()
	git(t, top, "init", "-q", "--bare", "o/r.git")
	dir := filepath.Join(top, "clone")
	git(t, top, "clone", "-q", "o/r.git", "clone")
	git(t, dir, "switch", "-qc", "main")
	if err := os.WriteFile(filepath.Join(dir, "a"), []byte("one\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	git(t, dir, "add", "-A")
	git(t, dir, "commit", "-qm", "first")
	git(t, dir, "push", "-q", "origin", "main")
	repo, err := worktree.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{host: &host{pulls: map[int]forge.PullRequest{}}, now: time.Unix(1_000_000_000, 0), dir: dir}
	b.Forge = &Forge{
		Repo: repo, Host: b.host, Now: func() time.Time { return b.now }, Config: config.Forge{Plugin: "x", Repository: "o/r"},
		Hide: func(text string) string { return strings.ReplaceAll(text, "token-secret", "***") },
	}
	return b
}

func pr(number int) event.PullRequest {
	return event.PullRequest{Number: number, Target: "refs/remotes/origin/main", Remote: "origin", Branch: "coven/t", Base: "main", Tip: "t"}
}

// A hundred tasks need one call for each poll, whoever asks, and a poll is not more frequent than Poll. Nothing else is asked for the known ones.
func TestPolls(t *testing.T) {
	b := newBench(t)
	var all []event.PullRequest
	for n := 1; n <= 100; n++ {
		b.host.pulls[n] = forge.PullRequest{Number: n, Version: "1", State: forge.Open}
		all = append(all, pr(n))
	}
	changed, err := b.Changed(t.Context(), all, false)
	if err != nil || len(changed) != 100 || b.host.polls != 1 {
		t.Fatalf("%d changed after %d polls: %v", len(changed), b.host.polls, err)
	}
	for _, p := range all {
		if _, err := b.State(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	b.host.limit = forge.Limit{Total: 5000, Remaining: 5000, Reset: b.now.Add(time.Hour), Cost: 2}
	for range 3600 / 20 { // three times a minute, for an hour, by three coven processes
		for range 3 {
			other := *b.Forge
			if changed, err := other.Changed(t.Context(), all, false); err != nil || len(changed) > 0 {
				t.Fatalf("%v, %v", changed, err)
			}
		}
		b.now = b.now.Add(20 * time.Second)
	}
	if b.host.polls > 121 || b.host.polls < 85 {
		t.Errorf("%d polls in an hour", b.host.polls)
	}
	last := b.host.asked[len(b.host.asked)-1]
	if last.Version == "" || len(last.Known) != 100 || slices.ContainsFunc(last.Known, func(k forge.Known) bool { return k.Version != "1" }) {
		t.Errorf("%+v", last)
	}
	b.host.pulls[42] = forge.PullRequest{Number: 42, Version: "2", State: forge.Merged}
	b.now = b.now.Add(time.Minute)
	if changed, err := b.Changed(t.Context(), all, false); err != nil || !slices.Equal(changed, []event.PullRequest{pr(42)}) {
		t.Errorf("%v, %v", changed, err)
	}
}

// Polls become rarer when the account's limit is nearly used, and stop until the end of a limit that is reached. Failures double the pause.
func TestPollsLess(t *testing.T) {
	b := newBench(t)
	b.host.pulls[1] = forge.PullRequest{Number: 1, Version: "1", State: forge.Open}
	next := func(want time.Duration) {
		t.Helper()
		_, _ = b.Changed(t.Context(), []event.PullRequest{pr(1)}, false)
		if got := read(b.Repo.Root).Repositories[0].Next.Sub(b.now); got.Round(time.Second) != want {
			t.Errorf("the next poll is in %s, not in %s", got, want)
		}
		b.now = b.now.Add(want)
	}
	next(Poll)
	b.host.limit = forge.Limit{Total: 5000, Remaining: 40, Reset: b.now.Add(20 * time.Minute), Cost: 2}
	next(2 * time.Minute)
	b.host.limit = forge.Limit{Total: 5000, Remaining: 1, Reset: b.now.Add(20 * time.Minute), Cost: 2}
	next(20 * time.Minute)
	b.host.limit = forge.Limit{Until: b.now.Add(7 * time.Minute)}
	next(7 * time.Minute)
	b.host.limit, b.host.err = forge.Limit{}, fmt.Errorf("502: %w", pluginerr.ErrTransient)
	next(time.Minute)
	next(2 * time.Minute)
	next(4 * time.Minute)
	next(8 * time.Minute)
	next(10 * time.Minute)
	if _, err := b.Changed(t.Context(), []event.PullRequest{pr(1)}, false); err == nil || !strings.Contains(err.Error(), "502") {
		t.Errorf("the problem is %v", err)
	}
	b.host.err = nil
	b.now = b.now.Add(time.Hour)
	next(Poll)
	b.host.err = pluginerr.ErrTransient
	next(time.Minute) // earlier failures do not count
}

// One question is about a limited number of pull requests: the newest.
func TestPollsMany(t *testing.T) {
	b := newBench(t)
	var all []event.PullRequest
	for n := 1; n <= forge.MaxKnown+1; n++ {
		all = append(all, pr(n))
	}
	if _, err := b.Changed(t.Context(), all, false); err != nil {
		t.Fatal(err)
	}
	if known := b.host.asked[0].Known; len(known) != forge.MaxKnown || known[0].Number != forge.MaxKnown+1 {
		t.Errorf("asked about %d, first %d", len(known), known[0].Number)
	}
}

// A version is only used if its report is stored: damage makes the next poll complete.
func TestDamagedStore(t *testing.T) {
	b := newBench(t)
	b.host.pulls[1] = forge.PullRequest{Number: 1, Version: "1", State: forge.Open}
	if _, err := b.State(t.Context(), pr(1)); err != nil {
		t.Fatal(err)
	}
	for _, damage := range []string{"", `{"v":1,"repositories":[{"repository":{"host":"","path":"o/r"},"version":"v1","pulls":{"1":{"version":"1","state":"merged"}}},5]}`, "{", "[]", `{"v":2,"repositories":[{"repository":{"host":"","path":"o/r"},"version":"v1","pulls":{"1":{"version":"1","state":"merged"}}}]}`, `{"v":1,"pulls":{"1":null}}`, `{"v":1,"repository":{"host":"else","path":"a/b"},"version":"v1","pulls":{"1":{"version":"1","state":"merged"}}}`} {
		if err := os.WriteFile(filepath.Join(b.Repo.Root, Dir, File), []byte(damage), 0o600); err != nil {
			t.Fatal(err)
		}
		b.now = b.now.Add(time.Minute)
		state, err := b.State(t.Context(), pr(1))
		if last := b.host.asked[len(b.host.asked)-1]; err != nil || state.State != forge.Open || last.Version != "" || last.Known[0].Version != "" {
			t.Errorf("%q: %+v, %v, asked %+v", damage, state, err, last)
		}
	}
}

// After coven has changed a pull request, its state is asked for at once, unless the account's limit is reached.
func TestStale(t *testing.T) {
	b := newBench(t)
	b.host.pulls[1] = forge.PullRequest{Number: 1, Version: "1", State: forge.Open}
	state := func() string {
		s, err := b.State(t.Context(), pr(1))
		return fmt.Sprintf("%s %v, %d polls", s.State, err, b.host.polls)
	}
	if got := state() + "; " + state(); got != "open <nil>, 1 polls; open <nil>, 1 polls" {
		t.Error(got)
	}
	if err := b.Merge(t.Context(), pr(1)); err != nil {
		t.Fatal(err)
	}
	b.host.pulls[1] = forge.PullRequest{Number: 1, Version: "2", State: forge.Merged}
	if got := state(); got != "merged <nil>, 2 polls" {
		t.Error(got)
	}
	b.host.limit = forge.Limit{Until: b.now.Add(time.Hour)}
	_ = b.Rerun(t.Context(), pr(1), forge.Check{ID: "5"})
	if got := state(); !strings.Contains(got, "waiting (merge): this machine: the limit of your account is reached") || b.host.polls != 3 {
		t.Error(got)
	}
	if got := state(); !strings.Contains(got, "limit") || b.host.polls != 3 {
		t.Error("the limit is ignored: " + got)
	}
	if text, err := b.Log(t.Context(), pr(1), forge.Check{}); err != nil || len(text) > 16<<10 || !strings.HasSuffix(text, "xa *** in a log") {
		t.Errorf("%q, %v", text, err)
	}
	if _, _ = b.Reply(t.Context(), pr(1), "9", "token-secret"); !slices.Equal(b.host.acts, []string{"merge 1 t", "rerun 5", "reply " + replyMark("9") + "\n***"}) {
		t.Errorf("%q", b.host.acts)
	}
}

// The state is asked for again after a call, also if coven is killed during the call, or another coven asks then.
func TestStaleDuringCall(t *testing.T) {
	b := newBench(t)
	b.host.pulls[1] = forge.PullRequest{Number: 1, Version: "1", State: forge.Open}
	state := func() forge.State {
		t.Helper()
		s, err := b.State(t.Context(), pr(1))
		if err != nil {
			t.Fatal(err)
		}
		return s.State
	}
	state()
	b.host.during = func() {
		if !read(b.Repo.Root).Repositories[0].Pulls[1].Stale {
			t.Error("the state is not stale during the call")
		}
		state()
		b.host.pulls[1] = forge.PullRequest{Number: 1, Version: "2", State: forge.Merged}
	}
	if err := b.Merge(t.Context(), pr(1)); err != nil || state() != forge.Merged {
		t.Errorf("%v, the state is older than the call", err)
	}
}

// A branch is pushed with a lease: commits of others stay, and own ones are replaced.
func TestPublish(t *testing.T) {
	b := newBench(t)
	commit := func(text string, args ...string) string {
		t.Helper()
		git(t, b.dir, append([]string{"commit", "-q", "--allow-empty", "-m", text}, args...)...)
		return git(t, b.dir, "rev-parse", "HEAD")
	}
	remote := func() string { return git(t, b.dir, "ls-remote", "-q", "origin", "refs/heads/coven/t") }
	publish := func(tip string, known ...string) error {
		_, err := b.Publish(t.Context(), event.Landing{Target: "refs/remotes/origin/main", Tip: tip, Tree: "t"}, "coven/t", known, "Title token-secret", "Text token-secret")
		return err
	}
	one := commit("one")
	if err := publish(one); err != nil || !strings.HasPrefix(remote(), one) {
		t.Fatalf("%v, %s", err, remote())
	}
	if r := b.host.opened[0]; r.Title != "Title ***" || r.Text != "Text ***" || r.Head != "coven/t" || r.Base != "main" || r.HeadPath != "" || r.Repository.Path != "o/r" {
		t.Errorf("%+v", r)
	}
	rewritten := commit("two", "--amend")
	if err := publish(rewritten); err == nil || !strings.HasPrefix(remote(), one) {
		t.Errorf("%v: it replaced a commit that is not known", err)
	}
	if err := publish(rewritten, one); err != nil || !strings.HasPrefix(remote(), rewritten) {
		t.Errorf("%v, %s", err, remote())
	}
	git(t, b.dir, "push", "-q", "-f", "origin", one+":refs/heads/coven/t")
	refused := (*runner.RefusedError)(nil)
	if err := publish(rewritten, rewritten); err == nil || !strings.HasPrefix(remote(), one) {
		t.Errorf("%v, %v: a commit of another person is gone", err, refused)
	}
	git(t, b.dir, "remote", "set-url", "origin", filepath.Join(t.TempDir(), "gone.git"))
	if err := publish(rewritten); err == nil || len(b.host.opened) != 2 {
		t.Errorf("%v: it was opened without a branch", err)
	}
}

// The branches of a fork are pushed to it, and the pull request names it. A remote without a host, and a host without a plugin, are usage errors
// that name the setting.
func TestPushToFork(t *testing.T) {
	b := newBench(t)
	fork := filepath.Join(filepath.Dir(b.dir), "fork.git")
	git(t, filepath.Dir(b.dir), "init", "-q", "--bare", "fork.git")
	git(t, b.dir, "remote", "add", "mine", "https://git.example/me/r.git")
	git(t, b.dir, "config", "url."+fork+".insteadOf", "https://git.example/me/r.git")
	b.Config.Push = "mine"
	tip := git(t, b.dir, "rev-parse", "HEAD")
	pr, err := b.Publish(t.Context(), event.Landing{Target: "refs/remotes/origin/main", Tip: tip, Tree: "t"}, "coven/t", nil, "T", "")
	if err != nil || pr.Remote != "mine" || pr.InBaseRepository() || b.host.opened[0].HeadPath != "me/r" || !strings.HasPrefix(git(t, fork, "rev-parse", "coven/t"), tip) {
		t.Errorf("%+v, %v, %+v", pr, err, b.host.opened)
	}
	for name, tt := range map[string]struct {
		config config.Forge
		target string
		text   string
	}{
		"no host":    {config.Forge{}, "refs/remotes/origin/main", "origin is on this machine, and coven does not know which forge plugin speaks with it"},
		"no path":    {config.Forge{Plugin: "x"}, "refs/remotes/origin/main", "the URL of origin does not name a repository on a host"},
		"no remote":  {config.Forge{Plugin: "x"}, "refs/remotes/gone/main", "gone/main: there is no remote for it"},
		"push where": {config.Forge{Plugin: "x", Repository: "o/r", Push: "gone"}, "refs/remotes/origin/main", "forge: there is no remote gone"},
	} {
		b.Config = tt.config
		if _, err := b.locate(t.Context(), tt.target); err == nil || err.Error() != tt.text {
			t.Errorf("%s: %v", name, err)
		}
	}
	for address, want := range map[string]string{
		"https://github.com/o/r.git": "github.com o/r", "https://user:pass@GitHub.com/o/r/": "github.com o/r", "git@github.com:o/r.git": "github.com o/r",
		"ssh://git@host:2222/a/b/c.git": "host a/b/c", "http://127.0.0.1:80/o/r": "127.0.0.1:80 o/r", "/srv/o/r.git": "", "../o/r": "", "file:///o/r": "", "host:r": "", "": "",
	} {
		host, path, ok := remote.Location(address)
		if got := strings.TrimSpace(host + " " + path); ok != (want != "") || ok && got != want {
			t.Errorf("%s: %q, %t", address, got, ok)
		}
	}
}

// Each repository has its own states, and a remote that is gone does not stop the others.
func TestRepositories(t *testing.T) {
	b := newBench(t)
	b.Config.Repository = ""
	git(t, b.dir, "remote", "set-url", "origin", "https://user:token-secret@host/o/r.git")
	git(t, b.dir, "remote", "add", "other", "git@host:o/other.git")
	b.host.pulls[1] = forge.PullRequest{Number: 1, Version: "1", State: forge.Open}
	other, gone := pr(1), pr(2)
	other.Target, gone.Target = "refs/remotes/other/main", "refs/remotes/gone/main"
	all := []event.PullRequest{gone, other, pr(1)}
	if changed, err := b.Changed(t.Context(), all, false); err == nil || !strings.Contains(err.Error(), "gone/main") || len(changed) != 2 || b.host.polls != 2 {
		t.Fatalf("%v, %v after %d polls", changed, err, b.host.polls)
	}
	if _, err := b.State(t.Context(), pr(1)); err != nil {
		t.Fatal(err)
	}
	if changed, err := b.Changed(t.Context(), all, false); err == nil || !slices.Equal(changed, []event.PullRequest{other}) || b.host.polls != 2 {
		t.Errorf("%v, %v after %d polls", changed, err, b.host.polls)
	}
	text, err := os.ReadFile(filepath.Join(b.Repo.Root, Dir, File))
	if err != nil || strings.Contains(string(text), "token-secret") || !strings.Contains(string(text), "o/other") {
		t.Errorf("%s, %v", text, err)
	}
}

// A host whose limit never ends, and a clock that was wrong, do not stop coven for good.
func TestImpossibleTimes(t *testing.T) {
	b := newBench(t)
	ask := func() { _, _ = b.Changed(t.Context(), []event.PullRequest{pr(1)}, false) }
	for i, limit := range []forge.Limit{
		{Until: b.now.AddDate(7000, 0, 0)},
		{Total: 5000, Remaining: 0, Cost: 1, Reset: b.now.AddDate(7000, 0, 0)},
		{Total: 5000, Remaining: 2, Cost: 1, Reset: b.now.AddDate(7000, 0, 0)},
	} {
		b.host.limit = limit
		ask()
		if b.host.polls != i+1 {
			t.Errorf("%d polls", b.host.polls)
		}
		ask()
		b.now = b.now.Add(maxLimit)
	}
	b.host.limit = forge.Limit{Total: 1, Remaining: 10, Cost: 1, Reset: b.now.Add(-time.Hour)}
	ask()
	ask()
	b.now = b.now.AddDate(-1, 0, 0)
	if ask(); b.host.polls != 5 {
		t.Errorf("%d polls", b.host.polls)
	}
}

// A plugin without versions can report changes, too, and a state that could not be got is offered again.
func TestUnversioned(t *testing.T) {
	b := newBench(t)
	b.host.pulls[1] = forge.PullRequest{Number: 1, State: forge.Open}
	changed := func() int {
		b.now = b.now.Add(time.Minute)
		found, _ := b.Changed(t.Context(), []event.PullRequest{pr(1)}, false)
		return len(found)
	}
	if _, err := b.State(t.Context(), pr(1)); err != nil || changed() != 0 {
		t.Fatal(err)
	}
	b.host.pulls[1] = forge.PullRequest{Number: 1, State: forge.Merged}
	if changed() != 1 {
		t.Error("the merge is not noticed")
	}
	b.host.err = fmt.Errorf("502 token-secret: %w", pluginerr.ErrTransient)
	_ = b.Ask(t.Context(), pr(1))
	wait := (*runner.Wait)(nil)
	if _, err := b.State(t.Context(), pr(1)); !errors.As(err, &wait) || wait.Until.IsZero() || strings.Contains(wait.Detail, "secret") || changed() != 0 {
		t.Errorf("%v", err)
	}
	b.host.err = nil
	if b.now = b.now.Add(time.Hour); changed() != 1 {
		t.Error("the session is not continued after the host has answered")
	}
}

// A host that refuses is the result of the step, and a title is one that hosts accept.
func TestRefused(t *testing.T) {
	b := newBench(t)
	tip := git(t, b.dir, "rev-parse", "HEAD")
	publish := func(title string) error {
		_, err := b.Publish(t.Context(), event.Landing{Target: "refs/remotes/origin/main", Tip: tip, Tree: "t"}, "coven/t", nil, title, strings.Repeat("x", 1<<20))
		return err
	}
	refused, wait := (*runner.RefusedError)(nil), (*runner.Wait)(nil)
	b.host.err = errors.New("422 token-secret\x1b[31m")
	if err := publish("x"); !errors.As(err, &refused) || strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "\x1b") {
		t.Errorf("%v", err)
	}
	b.host.err = pluginerr.ErrLogin
	if err := publish("x"); !errors.As(err, &wait) || wait.Command == "" || !wait.Until.Equal(b.now.Add(retryPause)) {
		t.Errorf("%v", err)
	}
	b.host.err = context.Canceled
	if err := publish("x"); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	b.host.err, b.host.opened = nil, nil
	for _, title := range []string{"", strings.Repeat("\u00e9", 300), "a\nb\x1b"} {
		if err := publish(title); err != nil {
			t.Error(err)
		}
	}
	for i, want := range []string{"coven/t", strings.Repeat("\u00e9", 249) + "…", "a b"} {
		if r := b.host.opened[i]; !strings.HasPrefix(r.Title, want) || len([]rune(r.Title)) > 250 || strings.Contains(r.Title, "\x1b") || len(r.Text) > forge.MaxText {
			t.Errorf("%q, %d bytes", r.Title, len(r.Text))
		}
	}
}

// A person does not wait for the next poll. A host that knows nothing newer is believed, but is asked for the complete state after coven's own changes.
func TestAskedNow(t *testing.T) {
	b := newBench(t)
	b.host.pulls[1] = forge.PullRequest{Number: 1, Version: "1", State: forge.Open}
	if _, err := b.State(t.Context(), pr(1)); err != nil {
		t.Fatal(err)
	}
	_, _ = b.Changed(t.Context(), []event.PullRequest{pr(1)}, false)
	if _, _ = b.Changed(t.Context(), []event.PullRequest{pr(1)}, true); b.host.polls != 2 {
		t.Errorf("%d polls", b.host.polls)
	}
	b.host.moved = "new/name"
	if _, err := b.Changed(t.Context(), []event.PullRequest{pr(1)}, true); err == nil || !strings.Contains(err.Error(), "the repository o/r is now new/name") {
		t.Errorf("%v", err)
	}
	b.host.moved = "o/r"
	if _, err := b.Changed(t.Context(), []event.PullRequest{pr(1)}, true); err != nil {
		t.Error(err)
	}
	_ = b.Ask(t.Context(), pr(1))
	delete(b.host.pulls, 1) // it reports nothing
	if s, err := b.State(t.Context(), pr(1)); err != nil || s.State != forge.Open || b.host.asked[4].Known[0].Version != "" {
		t.Errorf("%+v, %v, asked %+v", s, err, b.host.asked[4])
	}
	if _, err := b.Changed(t.Context(), nil, true); err != nil || b.host.polls != 5 {
		t.Errorf("%v, %d polls without a pull request", err, b.host.polls)
	}
}

// The plugin of a host is known by its name, and the branch of a fork has its path.
func TestLocate(t *testing.T) {
	b := newBench(t)
	b.Config = config.Forge{Push: "fork"}
	git(t, b.dir, "remote", "set-url", "origin", "https://github.com/o/r.git")
	for url, want := range map[string]string{"git@github.com:me/r": "me/r", "https://github.com/o/r": ""} {
		git(t, b.dir, "config", "remote.fork.url", url)
		if l, err := b.locate(t.Context(), pr(1).Target); err != nil || l.plugin != "github" || l.Path != "o/r" || l.push != "fork" || l.headPath != want {
			t.Errorf("%s: %+v, %v", url, l, err)
		}
	}
}

// A push that can succeed later is tried again, and a refused one is not. A pull request without a number is none.
func TestPushFailures(t *testing.T) {
	b := newBench(t)
	tip := git(t, b.dir, "rev-parse", "HEAD")
	origin := git(t, b.dir, "config", "remote.origin.url")
	publish := func() error {
		_, err := b.Publish(t.Context(), event.Landing{Target: "refs/remotes/origin/main", Tip: tip, Tree: "t"}, "coven/t", nil, "x", "y")
		return err
	}
	refused, wait := (*runner.RefusedError)(nil), (*runner.Wait)(nil)
	git(t, b.dir, "remote", "set-url", "origin", "http://127.0.0.1:1/o/r.git")
	if err := publish(); !errors.As(err, &wait) || !wait.Until.Equal(b.now.Add(retryPause)) {
		t.Errorf("%v", err)
	}
	git(t, b.dir, "remote", "set-url", "origin", origin)
	hook := filepath.Join(origin, "hooks", "pre-receive")
	if err := os.WriteFile(hook, []byte("#!/bin/sh\necho protected token-secret >&2; exit 1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := publish(); !errors.As(err, &refused) || strings.Contains(refused.Reason, "secret") {
		t.Errorf("%v", err)
	}
	if err := os.Remove(hook); err != nil {
		t.Fatal(err)
	}
	b.host.unnumbered = true
	if err := publish(); err == nil {
		t.Error("a pull request without a number")
	}
}
