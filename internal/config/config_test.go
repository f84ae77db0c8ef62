package config

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coven-run/coven/internal/budget"
	"github.com/coven-run/coven/internal/config/check"
	"github.com/coven-run/coven/internal/project/trust"
)

// project creates a repository and a user with the given settings files.
func project(t *testing.T, files map[string]string) (root string, getenv func(string) string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		write(t, filepath.Join(dir, name), text)
	}
	env := map[string]string{"HOME": filepath.Join(dir, "home")}
	return filepath.Join(dir, "repo"), func(name string) string { return env[name] }
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

const (
	user   = "home/.config/coven/config.yaml"
	ofRepo = "repo/.coven/config.yaml"
)

// loadFrom loads the settings of a repository.
func loadFrom(root string, untrusted trust.UntrustedPaths, getenv func(string) string) (Config, error) {
	return Sources{Root: root, Untrusted: untrusted, Getenv: getenv}.Load()
}

func TestLoadDefaults(t *testing.T) {
	for _, files := range []map[string]string{{"repo/x": ""}, {ofRepo: "# nothing\n", user: ""}} {
		root, getenv := project(t, files)
		c, err := loadFrom(root, trust.NewUntrustedPaths(root), getenv)
		want := Config{
			DefaultModel: "sonnet", DefaultAgent: "build", Agent: Agent{MaxRounds: 10}, Provider: "claude", Grimoire: "implement", PriorAttempt: true, Tracker: "auto",
			Prices: budget.DefaultPrices(), Run: Run{MaxTasks: 3, Collisions: "warn"}, Landing: Landing{Strategy: "squash", Batch: 4, Fsync: true}, Queue: defaultQueue(), Timeouts: Timeouts{Idle: 10 * time.Minute},
			Limits: Limits{MaxWait: 6 * time.Hour, SameCall: 5}, GC: GC{Auto: true, Keep: 30 * 24 * time.Hour},
			Worktree: Worktree{Branch: DefaultBranch, PoolGB: 10, Base: "target", Sparse: "all", SetupTimeout: 10 * time.Minute, TeardownTimeout: time.Minute},
			Notices:  Notices{On: []string{"waiting", "blocked", "failed"}, Terminal: "auto", Desktop: "auto", Window: 2 * time.Second, Quiet: 15 * time.Second},
		}
		if err != nil || !reflect.DeepEqual(c, want) {
			t.Errorf("got %+v, %v", c, err)
		}
	}
}

// Only names that the repository's file adds require the user's trust.
// The network is a list of hosts, the word private, or a list with it.
func TestNetwork(t *testing.T) {
	for text, want := range map[string]Network{"[]": {}, "private": {"private"}, "[a.example, private]": {"a.example", "private"}, "a.example": {"a.example"}} {
		root, getenv := project(t, map[string]string{user: "sandbox: {network: " + text + "}\n"})
		c, err := loadFrom(root, trust.NewUntrustedPaths(root), getenv)
		network := c.Sandbox.Network
		if err != nil || !slices.Equal(network, want) || network.IsPrivate() != strings.Contains(text, "private") || slices.Contains(network.Hosts(), "private") {
			t.Errorf("%s: %q, %v", text, network, err)
		}
	}
	root, getenv := project(t, map[string]string{user: "sandbox: {network: {private: true}}\n"})
	if _, err := loadFrom(root, trust.NewUntrustedPaths(root), getenv); err == nil {
		t.Error("a mapping is a network")
	}
}

func TestAskedNames(t *testing.T) {
	root, getenv := project(t, map[string]string{user: "env: {pass: [MINE, OTHER]}\n", ofRepo: "env: {pass: [MINE, THEIRS]}\n"})
	c, err := loadFrom(root, trust.NewUntrustedPaths(root), getenv)
	if want := (Env{Pass: []string{"MINE", "THEIRS"}, Asked: []string{"THEIRS"}}); err != nil || !reflect.DeepEqual(c.Env, want) {
		t.Errorf("%+v, %v", c.Env, err)
	}
	// A user's file inside the repository counts as the repository's.
	c, err = loadFrom(root, trust.NewUntrustedPaths(filepath.Dir(root)), getenv)
	if want := []string{"MINE", "THEIRS"}; err != nil || !reflect.DeepEqual(c.Env.Asked, want) {
		t.Errorf("%+v, %v", c.Env, err)
	}
}

func TestLoadPrecedence(t *testing.T) {
	root, getenv := project(t, map[string]string{
		user: "worktree: {base: remote, setup: [mine], setup_timeout: 1h}\ndefault_model: opus\nprovider: mine\nchecks: [a]\nenv: {pass: [A, B]}\nprior_attempt: false\n" +
			"run: {max_tasks: 5, budget: {usd: 20}}\nbudget: {usd: 5, wall: 1h}\nlimits: {max_wait: 1h}\ngc: {auto: false, keep: 48h}\nlanding: {batch: 6}\nqueue: {max_concurrent: 2, provider_limits: {mine: 2}}\n" +
			"notify: [{command: ring, on: [blocked, failed]}, {command: log}]\nallow_ungated: true\nnotices: {on: [failed], terminal: bell, desktop: off, quiet: 1m}\n",
		ofRepo: "worktree: {setup: [a, b], teardown: [c]}\ndefault_model: haiku\ndefault_agent: theirs\nrouting: [{match: sql, agent: tuner}]\nchecks: []\nenv: {pass: [C_1]}\ntimeouts: {idle: 30s}\ngrimoire: quick\n" +
			"run: {max_tasks: 8}\nqueue: {provider_limits: {anthropic: 4}}\ntracker: jsonl\nbudget: {}\nlimits: {same_call: 0}\n" +
			"prices: {as_of: 2026-11-01, models: [{model: mine-*, input: 1, output: 2.5, cache_read: 0.1}]}\n",
	})
	c, err := loadFrom(root, trust.NewUntrustedPaths(root), getenv)
	want := Config{
		Checks: []check.Check{}, DefaultModel: "haiku", DefaultAgent: "theirs", Agent: Agent{MaxRounds: 10}, Routing: []Route{{"sql", "tuner"}}, Provider: "mine", Grimoire: "quick",
		Env: Env{Pass: []string{"C_1"}, Asked: []string{"C_1"}}, Timeouts: Timeouts{Idle: 30 * time.Second},
		Budget: budget.Amount{USD: 5, Wall: time.Hour}, Worktree: Worktree{Branch: DefaultBranch, PoolGB: 10, Base: "remote", Sparse: "all", Setup: []string{"a", "b"}, SetupTimeout: time.Hour, Teardown: []string{"c"}, TeardownTimeout: time.Minute},
		Tracker: "jsonl", Landing: Landing{Strategy: "squash", Batch: 6, Fsync: true}, Queue: Queue{MaxConcurrent: 2, ProviderLimits: map[string]int{"local": 1, "anthropic": 3, "openai": 5, "mine": 2}}, Run: Run{MaxTasks: 5, Budget: budget.Amount{USD: 20}, Collisions: "warn"}, Limits: Limits{MaxWait: time.Hour}, GC: GC{Keep: 48 * time.Hour},
		Prices: budget.Prices{AsOf: budget.DefaultPrices().AsOf, Models: append(
			budget.DefaultPrices().Models, budget.Price{Model: "mine-*", Input: 1, Output: 2.5, CacheRead: 0.1, CacheWrite: 1},
		)},
		Notify: []Notice{{Command: "ring", On: []string{"blocked", "failed"}}, {Command: "log"}}, AllowUngated: true,
		Notices: Notices{On: []string{"failed"}, Terminal: "bell", Desktop: "off", Window: 2 * time.Second, Quiet: time.Minute},
	}
	if err != nil || !reflect.DeepEqual(c, want) {
		t.Errorf("got %+v, %v", c, err)
	}
	if c.Checks == nil {
		t.Error("an empty list of checks is given, not absent")
	}
}

// The repository's file lowers the limits of the user's own file, and cannot raise them. Its prices apply to models
// that have none.
func TestOwnLimits(t *testing.T) {
	limits := func(own, theirs string, untrusted ...string) (c Config, from map[string]string) {
		root, getenv := project(t, map[string]string{user: own, ofRepo: theirs})
		roots := []string{root}
		for range untrusted {
			roots = append(roots, filepath.Dir(root))
		}
		c, from, err := Sources{Root: root, Untrusted: trust.NewUntrustedPaths(roots...), Getenv: getenv}.load()
		if err != nil {
			t.Fatal(err)
		}
		return c, from
	}
	const own = "budget: {usd: 5, turns: 10}\nbudget_per_day: {usd: 20}\nrun: {max_tasks: 2, budget: {usd: 20}}\nqueue: {max_concurrent: 2, provider_limits: {mine: 2}}\n" +
		"timeouts: {idle: 1m}\nlimits: {max_wait: 1h, same_call: 4}\nprices: {as_of: 2026-11-01, models: [{model: x, input: 7, output: 7}]}\n"
	const high = "budget: {usd: 500, wall: 9h}\nbudget_per_day: {usd: 200, tokens: 9}\nrun: {max_tasks: 60, budget: {tokens: 9}}\nqueue: {max_concurrent: 60, provider_limits: {mine: 9, other: 9}}\n" +
		"timeouts: {idle: 9h}\nlimits: {max_wait: 9h, same_call: 0}\n" +
		"prices: {as_of: 2026-11-02, models: [{model: '*', input: 0, output: 0}, {model: gpt-5, input: 0, output: 0}]}\n"
	c, from := limits(own, high)
	got := []any{c.Budget, c.BudgetPerDay, c.Run, c.Queue.MaxConcurrent, c.Queue.ProviderLimits["mine"], c.Queue.ProviderLimits["other"], c.Timeouts.Idle, c.Limits}
	want := []any{
		budget.Amount{USD: 5, Turns: 10, Wall: 9 * time.Hour}, BudgetPerDay{USD: 20, Tokens: 9}, Run{2, budget.Amount{USD: 20, Tokens: 9}, "warn", "", ""}, 2, 2, 9, time.Minute, Limits{time.Hour, 4},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if p, _ := c.Prices.Of("x"); p.Input != 7 {
		t.Errorf("the price of x is %+v", p)
	}
	standard, _ := budget.DefaultPrices().Of("gpt-5")
	if p, _ := c.Prices.Of("gpt-5"); p != standard || standard.Input == 0 {
		t.Errorf("the price of gpt-5 is %+v", p)
	}
	if p, known := c.Prices.Of("unknown"); !known || p.Input != 0 {
		t.Errorf("the price of another model is %+v, %v", p, known)
	}
	if !strings.HasPrefix(from["run.max_tasks"], "/") || !strings.HasPrefix(from["budget"], ".coven") {
		t.Errorf("from %q and %q", from["run.max_tasks"], from["budget"])
	}
	c, from = limits(own, "run: {max_tasks: 1}\nlimits: {same_call: 3, max_wait: 1m}\ntimeouts: {idle: 10s}\n")
	if c.Run.MaxTasks != 1 || c.Limits != (Limits{time.Minute, 3}) || c.Timeouts.Idle != 10*time.Second || !strings.HasPrefix(from["run.max_tasks"], ".coven") {
		t.Errorf("lower limits: %+v, %+v, %v, %q", c.Run, c.Limits, c.Timeouts, from["run.max_tasks"])
	}
	if c, _ = limits("", high); c.Run.MaxTasks != 60 || c.Limits.SameCall != 0 || c.Budget.USD != 500 || c.Queue.ProviderLimits["anthropic"] != 3 {
		t.Errorf("without own limits: %+v, %+v, %+v", c.Run, c.Limits, c.Budget)
	}
	if c, _ = limits("run: {max_tasks: 2}\n", "run: {max_tasks: 9}\n", "the user's file is the repository's, too"); c.Run.MaxTasks != 9 {
		t.Errorf("with both files in the repository: %+v", c.Run)
	}
}

func TestLoadWhere(t *testing.T) {
	root, _ := project(t, map[string]string{"repo/x": "", "xdg/coven/config.yaml": "grimoire: there"})
	dir := filepath.Dir(root)
	for xdg, want := range map[string]string{filepath.Join(dir, "xdg"): "there", "xdg": "implement", "": "implement"} {
		c, err := loadFrom(root, trust.NewUntrustedPaths(root), func(name string) string { return map[string]string{"XDG_CONFIG_HOME": xdg}[name] })
		if err != nil || c.Grimoire != want {
			t.Errorf("%q: %s, %v", xdg, c.Grimoire, err)
		}
	}
}

func TestLoadErrors(t *testing.T) {
	root, getenv := project(t, map[string]string{
		user: "chekcs: [a]\n",
		ofRepo: `checks: ["", go test]
default_model: -x
provider: a b
prior_attempt: maybe
env:
  pass: [A-B]
  keep: x
timeouts:
  idle: 10
tracker: linear
run: {max_tasks: 0}
limits: {same_call: x}
budget: {usd: 0}
prices: {models: [{input: 3}, {model: x}]}
notify: [{command: x}]
allow_ungated: true
landing: {batch: 99}
`,
		"repo/.coven/config.yml": "",
	})
	_, err := loadFrom(root, trust.NewUntrustedPaths(root), getenv)
	var all Errors
	if !errors.As(err, new(Errors)) || !errors.As(err, &all) {
		t.Fatalf("got %T %v", err, err)
	}
	want := filepath.Join(filepath.Dir(root), user) + `:1:1: unknown key "chekcs" (did you mean "checks"?)
.coven/config.yml:1:1: coven does not read this file (rename it to config.yaml)
.coven/config.yaml:1:10: "" is not a check
.coven/config.yaml:2:16: "-x" is not a name
.coven/config.yaml:3:11: "a b" is not a name
.coven/config.yaml:4:16: this must be true or false, not "maybe"
.coven/config.yaml:6:10: "A-B" is not the name of a variable
.coven/config.yaml:7:3: unknown key "keep" (known: pass)
.coven/config.yaml:9:9: "10" is not a duration (a unit is missing: 10s or 10m?)
.coven/config.yaml:10:10: "linear" is not one of auto, bd, br, jsonl
.coven/config.yaml:11:18: 0 is not between 1 and 64
.coven/config.yaml:12:21: this must be a whole number, not "x"
.coven/config.yaml:13:15: a budget must be more than 0 (leave it out for none)
.coven/config.yaml:14:9: prices need the date they applied on (as_of: 2026-01-31)
.coven/config.yaml:14:9: a price needs a model name or pattern (model: claude-sonnet-*)
.coven/config.yaml:14:39: a price needs input and output, in US dollars per million tokens (input: 3, output: 15)
.coven/config.yaml:15:9: notify is allowed only in your own file (move it to $XDG_CONFIG_HOME/coven/config.yaml)
.coven/config.yaml:16:16: allow_ungated is allowed only in your own file (move it to $XDG_CONFIG_HOME/coven/config.yaml)
.coven/config.yaml:17:18: 99 is not between 1 and 64`
	if err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}

// Invalid values of single keys.
func TestLoadWrongValues(t *testing.T) {
	for text, want := range map[string]string{
		"grimoire: a b":                         `:1:11: "a b" is not a name`,
		"acp: {command: [./agent]}":             `:1:16: the program is neither a name nor an absolute path`,
		"acp: {env: [x]}":                       `:1:13: "x" is not NAME=VALUE`,
		"acp: {pass: [a b]}":                    `:1:14: "a b" is not the name of a variable`,
		"acp: {logins: [x]}":                    `:1:16: "x" is not an absolute path, or one below ~`,
		"notify: [{command: ' '}]":              `:1:9: a notice needs a command`,
		"notify: [{on: [blocked]}]":             `:1:9: a notice needs a command`,
		"notify: [{command: x, on: [blokced]}]": `:1:28: "blokced" is not one of waiting, blocked, failed, completed, cancelled, interrupted (did you mean "blocked"?)`,
	} {
		root, getenv := project(t, map[string]string{user: text + "\n", "repo/x": ""})
		if _, err := loadFrom(root, trust.NewUntrustedPaths(root), getenv); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// XDG_CONFIG_HOME takes precedence over HOME if it is absolute.
func TestUsersFile(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, ".config/coven/config.yaml"), "provider: home\n")
	write(t, filepath.Join(dir, "xdg/coven/config.yaml"), "provider: xdg\n")
	for _, test := range []struct{ xdg, home, want string }{
		{filepath.Join(dir, "xdg"), dir, "xdg"},
		{filepath.Join(dir, "xdg"), "", "xdg"},
		{"", dir, "home"},
		{"xdg", dir, "home"},
		{"", "", "claude"},
		{"xdg", "home", "claude"},
	} {
		env := map[string]string{"XDG_CONFIG_HOME": test.xdg, "HOME": test.home}
		c, err := Sources{Getenv: func(name string) string { return env[name] }}.Load()
		if err != nil || c.Provider != test.want {
			t.Errorf("%+v: %q, %v", test, c.Provider, err)
		}
	}
}

func TestLoadReadsOnlyTheRepository(t *testing.T) {
	root, getenv := project(t, map[string]string{"outside": "grimoire: stolen", "repo/.coven/x": ""})
	if err := os.Symlink("../../outside", filepath.Join(root, ".coven", fileName)); err != nil {
		t.Fatal(err)
	}
	if c, err := loadFrom(root, trust.NewUntrustedPaths(root), getenv); err == nil {
		t.Errorf("a link that leads out of the repository was followed: %+v", c)
	}
	root, getenv = project(t, map[string]string{"repo/.coven/x": ""})
	if err := syscall.Mkfifo(filepath.Join(root, ".coven", fileName), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := loadFrom(root, trust.NewUntrustedPaths(root), getenv); err == nil || !strings.Contains(err.Error(), "it is not a file") {
		t.Errorf("got %v", err)
	}
	root, getenv = project(t, map[string]string{ofRepo: strings.Repeat("#", maxFile+1)})
	if _, err := loadFrom(root, trust.NewUntrustedPaths(root), getenv); err == nil || !strings.Contains(err.Error(), "larger") {
		t.Errorf("got %v", err)
	}
}

// A user's file that is inside the repository, or links to it, has no special rights.
func TestUsersFileInside(t *testing.T) {
	const text = "default_model: opus\nallow_ungated: true\nnotify: [{command: x}]\n"
	for name, where := range map[string]func(t *testing.T, root, home string){
		"inside": func(t *testing.T, root, home string) { // HOME is the repository
			write(t, filepath.Join(root, ".config/coven/config.yaml"), text)
			symlink(t, root, home)
		},
		"led to": func(t *testing.T, root, home string) {
			write(t, filepath.Join(root, "theirs"), text)
			symlink(t, filepath.Join(root, "theirs"), filepath.Join(home, ".config/coven/config.yaml"))
		},
		"led through": func(t *testing.T, root, home string) {
			write(t, filepath.Join(filepath.Dir(root), "elsewhere/config.yaml"), text)
			symlink(t, "../elsewhere", filepath.Join(root, "out"))
			symlink(t, filepath.Join(root, "out"), filepath.Join(home, ".config/coven"))
		},
	} {
		root, getenv := project(t, map[string]string{"repo/x": ""})
		where(t, root, getenv("HOME"))
		_, err := loadFrom(root, trust.NewUntrustedPaths(root), getenv)
		for _, key := range []string{"2:16: allow_ungated", "3:9: notify"} {
			want := key + " is allowed only in your own file (this file is inside the repository: export XDG_CONFIG_HOME=DIR, outside of it)"
			if found := Errors(nil); !errors.As(err, &found) || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got %v", name, err)
			}
		}
	}
	root, getenv := project(t, map[string]string{"repo/x": "", user: text})
	if c, err := loadFrom(root, trust.NewUntrustedPaths(root), getenv); err != nil || !c.AllowUngated || len(c.Notify) != 1 {
		t.Errorf("got %+v, %v", c, err)
	}
}

func symlink(t *testing.T, to, link string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(to, link); err != nil {
		t.Fatal(err)
	}
}

// All examples in the reference are valid, and together they use every key.
func TestReference(t *testing.T) {
	text, err := os.ReadFile("../../docs/formats/config.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	if len(blocks) == 0 {
		t.Fatal("there are no examples")
	}
	for _, b := range blocks {
		c := Default()
		if _, err := c.apply(file{label: "config.md"}, []byte(b[1])); err != nil {
			t.Errorf("%v\nin\n%s", err, b[1])
		}
	}
	for _, key := range []string{"checks", "default_model", "provider", "grimoire", "prior_attempt", "env.pass", "timeouts.idle", "run.max_tasks", "run.budget", "budget", "prices", "tracker", "notify", "allow_ungated"} {
		if !strings.Contains(string(text), "`"+key+"`") {
			t.Errorf("%s is not described", key)
		}
	}
}
