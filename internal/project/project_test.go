package project

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/config"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/file/regularfile"
	"github.com/coven-run/coven/internal/process/clock"
	"github.com/coven-run/coven/internal/project/trust"
	"github.com/coven-run/coven/internal/secret"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/task"
	"github.com/coven-run/coven/internal/task/holder"
	"github.com/coven-run/coven/plugins"
	"github.com/coven-run/coven/worktree/claim"
)

// fixture is a git repository with its own environment.
type fixture struct {
	root, home string
	env        map[string]string
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{root: t.TempDir(), home: t.TempDir()}
	f.env = map[string]string{
		"HOME": f.home, "PATH": os.Getenv("PATH"), "GIT_CONFIG_GLOBAL": os.DevNull, "GIT_CONFIG_NOSYSTEM": "1",
		"GIT_AUTHOR_NAME": "Tester", "GIT_AUTHOR_EMAIL": "tester@example.invalid",
		"GIT_COMMITTER_NAME": "Tester", "GIT_COMMITTER_EMAIL": "tester@example.invalid",
	}
	for key, value := range f.env {
		t.Setenv(key, value)
	}
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"commit", "-q", "--allow-empty", "-m", "first"}} {
		cmd := exec.Command("git", args...)
		cmd.Dir = f.root
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
	}
	return f
}

func (f *fixture) environment() *Environment {
	e := NewEnv("test")
	e.Getenv = func(name string) string { return f.env[name] }
	e.Environ = func() []string {
		var all []string
		for name, value := range f.env {
			all = append(all, name+"="+value)
		}
		return all
	}
	e.Workdir = func() (string, error) { return f.root, nil }
	return e
}

func (f *fixture) open(t *testing.T) *Project {
	t.Helper()
	p, err := Open(t.Context(), f.environment())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (f *fixture) write(t *testing.T, name, text string) {
	t.Helper()
	file := filepath.Join(f.root, name)
	if strings.HasPrefix(name, "~/") {
		file = filepath.Join(f.home, name[2:])
	}
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}

func TestOpenRefusesLinks(t *testing.T) {
	for _, name := range []string{".coven/sessions", ".coven/worktrees", ".coven/run"} {
		f := newFixture(t)
		f.write(t, ".coven/.gitignore", "*\n")
		if err := os.Symlink(t.TempDir(), filepath.Join(f.root, name)); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(t.Context(), f.environment()); !errors.As(err, new(*regularfile.LinkError)) {
			t.Errorf("%s: got %v", name, err)
		}
		if _, _, err := OpenLenient(t.Context(), f.environment()); !errors.As(err, new(*regularfile.LinkError)) {
			t.Errorf("%s, lenient: got %v", name, err)
		}
	}
}

func TestOpenLenient(t *testing.T) {
	f := newFixture(t)
	f.write(t, ".coven/config.yaml", "grimoire: none\nnope: 1\n")
	if _, err := Open(t.Context(), f.environment()); exit.Code(err) != exit.Usage {
		t.Errorf("Open: got %v", err)
	}
	p, settings, err := OpenLenient(t.Context(), f.environment())
	if err != nil || settings == nil || p.Config.Grimoire != config.Default().Grimoire {
		t.Errorf("OpenLenient: got %+v, %v, %v", p, settings, err)
	}
	f.write(t, ".coven/config.yaml", "grimoire: none\n")
	p, settings, err = OpenLenient(t.Context(), f.environment())
	if err != nil || settings != nil || p.Config.Grimoire != "none" {
		t.Errorf("OpenLenient of valid settings: got %v, %v", settings, err)
	}
}

func TestGrimoireOf(t *testing.T) {
	f := newFixture(t)
	f.write(t, ".coven/grimoire-matchers.yaml", "rules:\n  - {name: small, grimoire: none, any_tags: [small]}\n")
	p := f.open(t)
	for _, c := range []struct {
		labels         []string
		flag, name, by string
	}{
		{nil, "", "implement", "the default"},
		{[]string{"small"}, "", "none", "small"},
		{[]string{"small", "grimoire:prepare-pr"}, "", "prepare-pr", "the label grimoire:prepare-pr"},
		{[]string{"small", "grimoire:prepare-pr"}, "review-only", "review-only", "--grimoire"},
	} {
		got, err := p.GrimoireOf(task.Task{ID: "t", Title: "T", Labels: c.labels}, c.flag)
		if err != nil || got.Grimoire != c.name || !strings.Contains(got.Why, c.by) {
			t.Errorf("%v %q: got %+v, %v", c.labels, c.flag, got, err)
		}
	}
	p.Config.Grimoire = "none"
	if got, err := p.GrimoireOf(task.Task{ID: "t"}, ""); err != nil || got.Why != "grimoire of the configuration" {
		t.Errorf("of the configuration: got %+v, %v", got, err)
	}
	if err := p.CheckChoice("nope"); err == nil {
		t.Error("an unknown grimoire was accepted")
	}
	f.write(t, ".coven/grimoire-matchers.yaml", "rules: [{grimoire: nope, any_tags: [a]}]\n")
	if _, err := p.GrimoireOf(task.Task{ID: "t"}, ""); err == nil {
		t.Error("rules that name an unknown grimoire were accepted")
	}
	if err := p.CheckChoice(""); err == nil {
		t.Error("CheckChoice accepted rules that name an unknown grimoire")
	}
	if err := p.CheckChoice("none"); err != nil {
		t.Errorf("the rules matter although a grimoire is given: %v", err)
	}
}

func TestModelOf(t *testing.T) {
	standard := config.Default()
	own := standard
	own.DefaultModel = "opus"
	for _, c := range []struct {
		provider string
		cfg      config.Config
		want     string
	}{
		{standard.Provider, standard, standard.DefaultModel},
		{"codex", standard, ""},
		{"codex", own, "opus"},
		{standard.Provider, own, "opus"},
	} {
		if got := ModelOf(c.provider, c.cfg); got != c.want {
			t.Errorf("%s, default_model %s: got %q, want %q", c.provider, c.cfg.DefaultModel, got, c.want)
		}
	}
}

func TestNeedsOf(t *testing.T) {
	g, err := grimoires.Parse("g.yaml", []byte("name: g\nsteps:\n"+
		"- {name: a, type: agent, prompt: x, provider: codex}\n"+
		"- {name: q, type: agent-loop, reviewers: [agent, style], arbiter: rules, steps: [{name: r, type: review, reviewers: [style]}]}\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := []plugins.Need{
		{Kind: plugins.KindArbiter, Name: "rules"},
		{Kind: plugins.KindProvider, Name: "claude"},
		{Kind: plugins.KindProvider, Name: "codex"},
		{Kind: plugins.KindReviewer, Name: "agent"},
		{Kind: plugins.KindReviewer, Name: "style"},
	}
	if got := NeedsOf(g, "claude"); !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
	p := newFixture(t).open(t)
	got := p.NeedsOfItems([]Item{{Task: task.Task{ID: "a", Labels: []string{"grimoire:nope"}}}, {Task: task.Task{ID: "b", Labels: []string{"grimoire:none"}}}}, "", "")
	if !slices.Equal(got, []plugins.Need{{Kind: plugins.KindProvider, Name: "claude"}}) {
		t.Errorf("of tasks: got %v", got)
	}
}

func TestAdHoc(t *testing.T) {
	f := newFixture(t)
	p := f.open(t)
	for _, prompt := range []string{"", " \n\t", strings.Repeat("x", task.MaxText+1)} {
		if _, err := p.AdHoc(t.Context(), prompt); exit.Code(err) != exit.Usage {
			t.Errorf("%.10q: got %v", prompt, err)
		}
	}
	one, err := p.AdHoc(t.Context(), "Say hi")
	if err != nil || one.Task.ID != "p-say-hi" || one.Task.Title != "Say hi" || one.Task.Description != "" || one.TrackerName() != NoTracker {
		t.Fatalf("got %+v, %v", one, err)
	}
	held := claim.Claim{Task: one.Task.ID, Session: "s", Holder: holder.Name(), Expires: clock.Now().Add(time.Hour)}
	if _, err := claim.Acquire(t.Context(), p.Repo, held, ""); err != nil {
		t.Fatal(err)
	}
	two, err := p.AdHoc(t.Context(), "\nSay hi\nto all")
	if err != nil || two.Task.ID != "p-say-hi-2" || two.Task.Title != "Say hi" || two.Task.Description != "\nSay hi\nto all" {
		t.Errorf("while the first is claimed: got %+v, %v", two, err)
	}
}

func TestAtLarge(t *testing.T) {
	p := newFixture(t).open(t)
	later, before := clock.Now().Add(time.Hour), clock.Now().Add(-time.Hour)
	for name, c := range map[string]struct {
		holder  string
		expires time.Time
		want    string
	}{
		"this test, which is not coven":    {holder.Name(), later, ""},
		"a process that ended":             {fmt.Sprintf("coven/%s/%d", holder.Machine(), 1<<22+1), later, ""},
		"no pid":                           {"coven/" + holder.Machine() + "/x", later, ""},
		"pid 0":                            {"coven/" + holder.Machine() + "/0", later, ""},
		"another machine":                  {"coven/elsewhere/7", later, "elsewhere may still work on it until"},
		"another machine, its lease ended": {"coven/elsewhere/7", before, ""},
	} {
		got := p.AtLarge(claim.Held{Claim: claim.Claim{Holder: c.holder, Expires: c.expires}})
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: got %q", name, got)
		}
	}
}

func TestDeadAndAbandoned(t *testing.T) {
	f := newFixture(t)
	p := f.open(t)
	held := claim.Held{Claim: claim.Claim{Task: "t", Session: "20260101-000000-t", Holder: holder.Name()}}
	if why, _ := p.Dead(t.Context(), held); !strings.Contains(why, "is gone") {
		t.Errorf("a session without a record: got %q", why)
	}
	s, err := session.Create(f.root, "t", "T", clock.Now)
	if err != nil {
		t.Fatal(err)
	}
	held.Session = s.ID
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if why, _ := p.Dead(t.Context(), held); !strings.Contains(why, "never started") {
		t.Errorf("a session that never began: got %q", why)
	}
	for owner, want := range map[string]bool{
		holder.ActorOf(s.ID): true, "coven/elsewhere/" + s.ID: false, "coven/x/unknown": false, "ada": false, s.ID: false,
	} {
		if got := p.Abandoned(owner); got != want {
			t.Errorf("abandoned by %s: got %v", owner, got)
		}
	}
}

// secretGrimoire returns a grimoire with a step that gets a secret.
func secretGrimoire(command string) string {
	return "name: deploy\nsteps:\n- {name: a, type: script, command: \"" + command + " {{.secrets.API_KEY}}\"}\n"
}

func TestSecretRequests(t *testing.T) {
	f := newFixture(t)
	f.env[secret.Variable("API_KEY")] = "s3cret-value"
	f.write(t, ".coven/grimoires/deploy.yaml", secretGrimoire("push"))
	p := f.open(t)
	all, err := p.Requests()
	if err != nil || len(all) != 1 || all[0].Kind != trust.KindSecret || all[0].Variable != secret.Variable("API_KEY") || !strings.HasPrefix(all[0].Name, "deploy:API_KEY:") {
		t.Fatalf("got %+v, %v", all, err)
	}
	if err := p.CheckRequests(all); exit.Code(err) != exit.Usage || !strings.Contains(err.Error(), "$"+all[0].Variable) {
		t.Errorf("before the user trusts it: got %v", err)
	}
	wanted, rest, err := p.UntrustedRequests([]string{"deploy:API_KEY", "nope"})
	if err != nil || len(wanted) != 1 || !slices.Equal(rest, []string{"nope"}) {
		t.Errorf("by name: got %+v, %v, %v", wanted, rest, err)
	}
	store, err := p.TrustStore()
	if err == nil {
		err = store.Add(all[0].Item(clock.Now()))
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := p.CheckRequests(all); err != nil {
		t.Errorf("once the user trusts it: %v", err)
	}
	// The same secret in another command is a different request.
	f.write(t, ".coven/grimoires/deploy.yaml", secretGrimoire("leak"))
	changed, err := p.Requests()
	if err != nil || len(changed) != 1 || changed[0].hash() == all[0].hash() {
		t.Fatalf("after the edit: got %+v, %v", changed, err)
	}
	if err := p.CheckRequests(changed); exit.Code(err) != exit.Usage {
		t.Errorf("after the edit: got %v", err)
	}
}

// Neither the user's own grimoire nor a plan of it needs trust.
func TestOwnGrimoireNeedsNoTrust(t *testing.T) {
	f := newFixture(t)
	f.env[secret.Variable("API_KEY")] = "s3cret-value"
	f.write(t, "~/.config/coven/grimoires/deploy.yaml", secretGrimoire("push"))
	p := f.open(t)
	if all, err := p.Requests(); err != nil || len(all) != 0 {
		t.Errorf("got %+v, %v", all, err)
	}
	store, err := p.Secrets()
	if err != nil {
		t.Fatal(err)
	}
	for command, want := range map[string]int{"push": 0, "leak": 1} {
		g, err := grimoires.Parse("deploy.yaml", []byte(secretGrimoire(command)))
		if err != nil {
			t.Fatal(err)
		}
		if got := p.SecretRequests(g, store); len(got) != want {
			t.Errorf("a plan with %q: got %+v", command, got)
		}
	}
}

func TestSecretsMustBeIgnored(t *testing.T) {
	f := newFixture(t)
	f.write(t, ".coven/secrets.yaml", "api_key: s3cret-value\n")
	f.write(t, ".coven/.gitignore", "sessions\n")
	if _, err := f.open(t).Secrets(); exit.Code(err) != exit.Usage {
		t.Errorf("a file that git does not ignore: got %v", err)
	}
	f.write(t, ".coven/.gitignore", "secrets.yaml\n")
	if _, err := f.open(t).Secrets(); err != nil {
		t.Errorf("an ignored file: %v", err)
	}
}

func TestEnvironment(t *testing.T) {
	f := newFixture(t)
	e := f.environment()
	if got, want := e.UserDir(), filepath.Join(f.home, ".config", "coven"); got != want {
		t.Errorf("UserDir: got %s, want %s", got, want)
	}
	if got, want := e.CacheDir(), filepath.Join(f.home, ".cache", "coven"); got != want {
		t.Errorf("CacheDir: got %s, want %s", got, want)
	}
	f.env["XDG_CONFIG_HOME"], f.env["XDG_CACHE_HOME"] = "relative", "relative"
	if e.UserDir() != filepath.Join(f.home, ".config", "coven") || e.CacheDir() != filepath.Join(f.home, ".cache", "coven") {
		t.Error("relative directories count")
	}
	f.env["XDG_CONFIG_HOME"], f.env["XDG_CACHE_HOME"], f.env["XDG_RUNTIME_DIR"], f.env["USER"] = "/c", "/d", "/run/"+strings.Repeat("x", 100), "ada"
	if e.UserDir() != "/c/coven" || e.CacheDir() != "/d/coven" || e.User() != "ada" {
		t.Errorf("got %s, %s, %s", e.UserDir(), e.CacheDir(), e.User())
	}
	if len(e.SocketDir()) > maxSocketDir {
		t.Errorf("the path of a socket would be too long below %s", e.SocketDir())
	}
	p := f.open(t)
	if p.Near(filepath.Join(f.root, "a/b")) != "a/b" || p.Near("/etc/passwd") != "/etc/passwd" {
		t.Error("Near is wrong")
	}
}

func TestWhoseGrimoire(t *testing.T) {
	f := newFixture(t)
	f.write(t, ".coven/grimoires/ours.yaml", secretGrimoire("push"))
	f.write(t, ".coven/grimoires/implement.yaml", strings.Replace(secretGrimoire("push"), "deploy", "implement", 1))
	f.write(t, "~/.config/coven/grimoires/mine.yaml", secretGrimoire("push"))
	p := f.open(t)
	for name, want := range map[string]bool{"ours": true, "implement": true, "mine": false, "none": false, "unknown": true} {
		if got := p.isProject(name); got != want {
			t.Errorf("%s comes from the repository: got %v", name, got)
		}
	}
}

// User settings inside the repository count as the repository's.
func TestUserDirectoryInRepository(t *testing.T) {
	f := newFixture(t)
	f.env["XDG_CONFIG_HOME"] = f.root
	f.write(t, "coven/grimoires/mine.yaml", secretGrimoire("push"))
	if p := f.open(t); !p.isProject("mine") {
		t.Error("a grimoire inside the repository counts as the user's")
	}
}

func TestTrustEverything(t *testing.T) {
	f := newFixture(t)
	asked := []Request{{Kind: trust.KindVariable, Name: "TOKEN", Variable: "TOKEN", Why: "test"}}
	p := f.open(t)
	if err := p.CheckRequests(asked); exit.Code(err) != exit.Usage {
		t.Errorf("without a word of the user: got %v", err)
	}
	if err := p.CheckRequests(nil); err != nil {
		t.Errorf("nothing is asked: got %v", err)
	}
	f.env[trust.Variable] = "1"
	if err := p.CheckRequests(asked); err != nil {
		t.Errorf("with %s=1: got %v", trust.Variable, err)
	}
}

// A coven that a program of a task starts does not wait for its own check.
func TestCheckLocks(t *testing.T) {
	env := map[string]string{"HOME": "/home/u"}
	e := &Environment{Getenv: func(name string) string { return env[name] }}
	if got := e.CheckLocks(); got != "/home/u/.local/state/coven/locks" {
		t.Error(got)
	}
	env["XDG_STATE_HOME"], env["COVEN_STEP_KEY"] = "/s", "0123"
	if got := e.CheckLocks(); got != "/s/coven/locks/0123" {
		t.Error(got)
	}
	env = map[string]string{}
	if got := e.CheckLocks(); got != "" {
		t.Error(got)
	}
}
