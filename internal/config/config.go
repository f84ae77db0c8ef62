// Package config reads coven's settings. Settings in the project's .coven/config.yaml override those in
// the user's $XDG_CONFIG_HOME/coven/config.yaml, which override the defaults, key by key. The project's file
// cannot raise the limits of the user's.
//
// The files are strict: an unknown key is an error with its line and column.
// docs/formats/config.md describes all keys.
package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/coven-run/coven/internal/budget"
	"github.com/coven-run/coven/internal/config/check"
	"github.com/coven-run/coven/internal/config/yamldoc"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/file/regularfile"
	"github.com/coven-run/coven/internal/project/trust"
	"github.com/coven-run/coven/internal/sandbox/egress"
	"github.com/coven-run/coven/internal/text/lazyregexp"
	"github.com/coven-run/coven/internal/text/shellword"
)

// Errors lists all errors in the files.
type Errors = yamldoc.Errors

// Config holds coven's settings. The tags define the keys of the files: see package yamldoc
// for yaml, later and oneof, and package schema for about. Keys tagged user are only allowed in
// the user's file.
type Config struct {
	Checks       []check.Check `yaml:"checks" about:"shell commands that must pass before a change lands, in order"` // nil to detect them
	DefaultModel string        `yaml:"default_model" about:"the model that agents use"`
	Provider     string        `yaml:"provider" about:"the provider that runs agents"`
	ACP          ACP           `yaml:"acp" about:"the agent of the provider acp, which speaks the Agent Client Protocol; the user's file only"`
	DefaultAgent string        `yaml:"default_agent" about:"the agent of coven run --grimoire none, which coven agents resolve names if no other suits the task"`
	Agent        Agent         `yaml:"agent" about:"how agents share the work"`
	Routing      []Route       `yaml:"routing" about:"which agent coven agents resolve names: the first rule that matches"`
	Grimoire     string        `yaml:"grimoire" about:"the default workflow"`
	PriorAttempt bool          `yaml:"prior_attempt" about:"tell agents how the previous session of the task ended"`
	Tracker      string        `yaml:"tracker" oneof:"auto|bd|br|jsonl" about:"where tasks live"`
	Budget       budget.Amount `yaml:"budget" about:"of a run whose grimoire sets none"`
	BudgetPerDay BudgetPerDay  `yaml:"budget_per_day" about:"of all sessions of a repository on one day"`
	Prices       budget.Prices `yaml:"prices" later:"true" about:"of models whose CLI does not report the cost"`
	Run          Run           `yaml:"run" about:"how tasks are run"`
	Landing      Landing       `yaml:"landing" about:"how changes land"`
	Forge        Forge         `yaml:"forge" about:"the host of the repository, for pull requests"`
	Queue        Queue         `yaml:"queue" about:"how the subagents of a session are run"`
	Worktree     Worktree      `yaml:"worktree" about:"how the worktree of a task is prepared and removed"`
	Env          Env           `yaml:"env" about:"environment variables for agents and scripts"`
	Timeouts     Timeouts      `yaml:"timeouts" about:"limits of every step"`
	Limits       Limits        `yaml:"limits" about:"of accounts and agents"`
	Search       Search        `yaml:"search" about:"how files are ranked for a query"`
	MCP          MCP           `yaml:"mcp" about:"how agents use MCP servers"`
	GC           GC            `yaml:"gc" about:"what coven gc deletes, and when"`
	Permissions  []Rule        `yaml:"permissions" user:"true" about:"rules for the tool calls of all agents; the user's file only"`
	Notify       []Notice      `yaml:"notify" user:"true" about:"commands that notify you when a task changes its state; the user's file only"`
	Notices      Notices       `yaml:"notices" about:"how coven tells you, when you look elsewhere, that a task needs you; the user's file only"`
	Telemetry    Telemetry     `yaml:"telemetry" about:"where coven sends traces of sessions; the user's file only"`
	Sandbox      Sandbox       `yaml:"sandbox" about:"what the programs of a task may do; the user's file only"`
	AllowUngated bool          `yaml:"allow_ungated" user:"true" about:"run agents whose tool calls coven cannot stop (codex, qwen, acp) also without a sandbox; the user's file only"`
}

// BudgetPerDay limits the sessions of a repository together on one local day. A zero field is no limit.
type BudgetPerDay struct {
	USD    float64 `yaml:"usd" about:"US dollars that all sessions of a repository use on one day; then no agent starts until the next day"`
	Tokens int64   `yaml:"tokens" about:"as budget_per_day.usd: tokens that models read for the first time or write"`
}

// Amount returns the limit.
func (b BudgetPerDay) Amount() budget.Amount { return budget.Amount{USD: b.USD, Tokens: b.Tokens} }

// Run configures how tasks are run.
type Run struct {
	MaxTasks int           `yaml:"max_tasks" about:"how many tasks run at once, 1 to 64"`
	Budget   budget.Amount `yaml:"budget" about:"of all tasks of one coven run together"`
	// Collisions says how predicted conflicts between tasks are handled.
	Collisions string `yaml:"collisions" oneof:"off|warn|tell|serialize" about:"predicted conflicts between tasks: warn shows them; tell also tells the agents; serialize also holds back ready tasks with the same touches: labels"`
	// Remote is the remote that keeps sessions; empty to keep them on this machine only.
	Remote string `yaml:"remote" about:"the git remote that keeps sessions, so that other machines can continue them: origin"`
}

// Landing configures how changes land.
type Landing struct {
	Strategy string   `yaml:"strategy" oneof:"squash|merge|rebase|pull-request" about:"how a change lands if its grimoire does not say"`
	Message  string   `yaml:"message" about:"the subject of the commits of a task: a template such as {{.type}}: {{.title}}"`
	Signoff  bool     `yaml:"signoff" about:"add a Signed-off-by trailer with your name to the commits"`
	Trailers []string `yaml:"trailers" about:"further trailers of the commits: templates such as Ticket: {{.external_ref}}"`
	Batch    int      `yaml:"batch" about:"how many tasks of one coven that wait for the same target are checked together, 1 to 64; 1: each alone"`
	Allow    []string `yaml:"allow" about:"globs of new paths that land although they look like dependencies or build output, or are links out of the repository"`
	Fsync    bool     `yaml:"fsync" about:"wait until a change is on disk before the target moves; false: after a power failure, files of your checkout may be empty"`
}

// Forge configures the host of the repository. Empty values are derived from the URL of the remote. A repository must not choose
// where the user's credential is sent.
type Forge struct {
	Plugin     string `yaml:"plugin" about:"the forge plugin: github, gitlab, gitea; by default the one for the host of the remote"`
	API        string `yaml:"api" user:"true" about:"the address of the host's API: https://git.example.com/api/v3; the user's file only"`
	Repository string `yaml:"repository" user:"true" about:"OWNER/NAME on the host, if the URL of the remote does not tell; the user's file only"`
	Push       string `yaml:"push" about:"the remote that gets the branches of tasks, such as your fork; by default the one of the target"`
	Draft      bool   `yaml:"draft" about:"open pull requests as drafts"`
}

// Agent configures how agents share the work; see package agenttree.
type Agent struct {
	MultiAgent bool `yaml:"multiAgent" about:"an orchestrator without tools delegates tasks to specialists, which have the tools"`
	MaxRounds  int  `yaml:"max_rounds" about:"how many times it delegates in one run, 1 to 1000"`
}

// Search configures how files are ranked for a query.
type Search struct {
	Embeddings Embeddings `yaml:"embeddings" user:"true" about:"an endpoint that compares passages by their meaning"`
}

// Embeddings configures an endpoint that embeds texts; see package embedding. The endpoint receives parts of files, so a
// repository must not configure one.
type Embeddings struct {
	URL   string `yaml:"url" user:"true" about:"an OpenAI-compatible endpoint that compares passages by their meaning: http://localhost:11434/v1"`
	Model string `yaml:"model" user:"true" about:"its model: nomic-embed-text"`
	Key   string `yaml:"key" user:"true" about:"the name of the variable with its key"`
}

// MCP configures how agents use MCP servers.
type MCP struct {
	Agents bool `yaml:"agents" about:"make an agent mcp-NAME for each server, which has only its tools"`
}

// Notice is a command that coven runs when a task changes its state.
type Notice struct {
	Command string   `yaml:"command" need:"true" about:"given to sh -c"`
	On      []string `yaml:"on,omitempty" about:"states; default: all but interrupted"`
}

// Notices configures how coven tells a person who looks elsewhere that a task needs them.
type Notices struct {
	On       []string      `yaml:"on" user:"true" about:"states that are announced: waiting, blocked and failed"`
	Terminal string        `yaml:"terminal" user:"true" oneof:"auto|osc9|osc777|osc99|bell|off" about:"a notification of the terminal, or its bell; auto: the best that the terminal is known to have"`
	Desktop  string        `yaml:"desktop" user:"true" oneof:"auto|on|off" about:"notify-send or osascript; auto: if the terminal has only a bell"`
	Window   time.Duration `yaml:"window" user:"true" about:"changes of several tasks within this time are one notice"`
	Quiet    time.Duration `yaml:"quiet" user:"true" about:"no notice for this long after you have pressed a key or started the command"`
}

// Values of notices.terminal and notices.desktop.
const (
	NoticesAuto = "auto"
	NoticesOn   = "on"
	NoticesOff  = "off"
)

// Telemetry configures where coven sends the traces of ended sessions; see package telemetry. By
// default it sends none. A repository must not choose the destination.
type Telemetry struct {
	Endpoint string `yaml:"endpoint" user:"true" about:"an OTLP/HTTP receiver: http://localhost:4318"`
	File     string `yaml:"file" user:"true" about:"a file that gets a line of OTLP JSON for each session: absolute, or below ~"`
}

// Env selects the user's environment variables that agents and scripts inherit.
type Env struct {
	Pass []string `yaml:"pass" about:"names of additional variables"`
	// Asked lists the variables in Pass that only the repository's file names. They
	// require the user's trust.
	Asked []string `yaml:"-"`
}

// Sandbox extends the rights of a task's programs; see package sandbox for the defaults.
type Sandbox struct {
	Write   []string `yaml:"write" user:"true" about:"files and directories that they may change: absolute, or below ~"`
	Network Network  `yaml:"network" user:"true" about:"hosts that they may reach: example.com, *.example.com, example.com:8443; private: each has a loopback of its own"`
	Caches  []string `yaml:"caches" user:"true" about:"directories of yours that they may change without changing yours: absolute, or below ~"`
	Hide    []string `yaml:"hide" user:"true" about:"files and directories that they cannot read: absolute, or below ~; !PATH shows a default one"`
}

// Network lists hosts in the format of package egress, and may contain the word private.
type Network []string

const private = "private"

// Single allows the network to be written as one word: see package yamldoc.
func (Network) Single() {}

// IsPrivate reports whether programs have a network of their own.
func (n Network) IsPrivate() bool { return slices.Contains(n, private) }

// Hosts returns the hosts that programs may reach.
func (n Network) Hosts() []string {
	return slices.DeleteFunc(slices.Clone(n), func(host string) bool { return host == private })
}

// Timeouts limits every step.
type Timeouts struct {
	Idle time.Duration `yaml:"idle" about:"a step that prints nothing for this long is stopped"`
}

// Limits configures when a step or a run without progress ends.
type Limits struct {
	MaxWait  time.Duration `yaml:"max_wait" about:"how long a task waits for a rate limit"`
	SameCall int           `yaml:"same_call" about:"how often in a row an agent may make the same call with the same result; 0: any number"`
}

// GC configures what coven gc deletes, and when.
type GC struct {
	Auto bool          `yaml:"auto" about:"run coven gc once a day, in the background, after the last task has ended"`
	Keep time.Duration `yaml:"keep" about:"how long snapshots are kept after their session has landed"`
}

// Default returns the default settings.
func Default() Config {
	return Config{
		DefaultModel: "sonnet", DefaultAgent: "build", Provider: "claude", Agent: Agent{MaxRounds: 10}, Grimoire: "implement", PriorAttempt: true, Tracker: "auto",
		Prices: budget.DefaultPrices(), Run: Run{MaxTasks: 3, Collisions: "warn"}, Landing: Landing{Strategy: "squash", Batch: 4, Fsync: true}, Queue: defaultQueue(), Timeouts: Timeouts{Idle: 10 * time.Minute},
		Notices: Notices{On: NeedyStates(), Terminal: NoticesAuto, Desktop: NoticesAuto, Window: 2 * time.Second, Quiet: 15 * time.Second},
		Limits:  Limits{MaxWait: 6 * time.Hour, SameCall: 5}, GC: GC{Auto: true, Keep: 30 * 24 * time.Hour},
		Worktree: Worktree{PoolGB: 10, Branch: DefaultBranch, Base: "target", Sparse: "all", SetupTimeout: 10 * time.Minute, TeardownTimeout: time.Minute},
	}
}

const (
	fileName  = "config.yaml"
	maxFile   = 1 << 20
	maxRounds = 1000
)

// Sources locates the settings files.
type Sources struct {
	Root      string               // main checkout of the repository; empty for the user's file only
	Untrusted trust.UntrustedPaths // paths that are writable by authors of the repository
	Getenv    func(string) string  // looks up XDG_CONFIG_HOME and HOME
	Dir       string               // the user's directory, to which the name of the project's file is relative; defaults to Root
}

// Load reads the settings. The error is an Errors if a file is invalid.
func (s Sources) Load() (Config, error) {
	c, _, err := s.load()
	return c, err
}

// load reads the settings. It also returns the location of each key in the files, as FILE:LINE.
func (s Sources) load() (Config, map[string]string, error) {
	c, from := Default(), map[string]string{}
	own := map[string]bool{} // keys of the user's own file
	var all Errors
	for _, f := range s.files() {
		all = append(all, f.misnamed()...)
		data, err := f.read()
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return Config{}, nil, err
		}
		before := c
		lines, err := c.apply(f, data)
		if f.theirs {
			c.keepLimits(before, own)
		}
		if found := Errors(nil); errors.As(err, &found) {
			all = append(all, found...)
		}
		for _, k := range keys() {
			if line, ok := lines[k.name]; ok && (!f.theirs || !c.keeps(k, before, own)) {
				from[k.name] = fmt.Sprintf("%s:%d", f.label, line)
				own[k.name] = !f.theirs
			}
		}
	}
	if len(all) > 0 {
		return Config{}, nil, all
	}
	return c, from, nil
}

// file is a settings file, which need not exist.
type file struct {
	dir, name string
	label     string // name in errors
	inside    bool   // a link must not lead outside of dir
	theirs    bool   // authors of the repository control the content
}

// files returns the files in ascending precedence.
func (s Sources) files() []file {
	var all []file
	dir := s.Getenv("XDG_CONFIG_HOME")
	if home := s.Getenv("HOME"); !filepath.IsAbs(dir) && filepath.IsAbs(home) {
		dir = filepath.Join(home, ".config")
	}
	if filepath.IsAbs(dir) {
		dir = filepath.Join(dir, "coven")
		all = append(all, file{dir: dir, name: fileName, label: filepath.Join(dir, fileName), theirs: s.Untrusted.Contains(filepath.Join(dir, fileName))})
	}
	if s.Root != "" {
		project := path.Join(".coven", fileName)
		all = append(all, file{dir: s.Root, name: project, label: s.fromHere(project), inside: true, theirs: true})
	}
	return all
}

// fromHere returns the path of a project file relative to the user's directory.
func (s Sources) fromHere(name string) string {
	dir, err := filepath.EvalSymlinks(s.Dir)
	if err != nil || s.Dir == "" {
		return name
	}
	root, err := filepath.EvalSymlinks(s.Root)
	if err != nil {
		return name
	}
	path, err := filepath.Rel(dir, filepath.Join(root, name))
	if err != nil {
		return name
	}
	return path
}

// misnamed reports a config.yml, which would otherwise be ignored silently.
func (f file) misnamed() Errors {
	yml := func(name string) string { return strings.TrimSuffix(name, ".yaml") + ".yml" }
	if _, err := os.Lstat(filepath.Join(f.dir, yml(f.name))); err != nil {
		return nil //nolint:nilerr // there is no such file
	}
	return Errors{{File: yml(f.label), Line: 1, Column: 1, Msg: "coven does not read this file", Hint: "rename it to " + fileName}}
}

func (f file) path() string { return filepath.Join(f.dir, f.name) }

// read returns the content of the file. If the file does not exist, the error is fs.ErrNotExist.
func (f file) read() ([]byte, error) {
	if f.inside {
		data, err := regularfile.ReadIn(f.dir, f.name, maxFile)
		return data, f.readError(err)
	}
	data, err := regularfile.Read(f.path(), maxFile)
	return data, f.readError(err)
}

// errLeadsOut means that the project's file is a link to a file elsewhere.
var errLeadsOut = errors.New("it is a symbolic link that points outside the repository")

// readError converts an error to the usage error for an unreadable file.
func (f file) readError(err error) error {
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if f.inside && f.leadsOut() {
		err = errLeadsOut
	}
	return exit.Usagef("ls -ld "+shellword.Word(f.label), "read %s: %w", f.label, regularfile.Cause(err))
}

// leadsOut reports whether the file is a link to a target outside of its directory.
func (f file) leadsOut() bool {
	dir, err := filepath.EvalSymlinks(f.dir)
	if err != nil {
		return false
	}
	target, err := filepath.EvalSymlinks(f.path())
	if err != nil { // a dangling link
		link, err := os.Readlink(f.path())
		if err != nil {
			return false
		}
		if target = link; !filepath.IsAbs(link) {
			target = filepath.Join(dir, filepath.Dir(f.name), link)
		}
	}
	inside, err := filepath.Rel(dir, target)
	return err != nil || !filepath.IsLocal(inside)
}

var (
	variableRE = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]*$`)
	wordRE     = lazyregexp.New(`^[^\s\pC-][^\s\pC]*$`)
)

// apply applies a file. It changes only settings that the file contains, and returns the
// line of each of them.
func (c *Config) apply(f file, data []byte) (lines map[string]int, err error) {
	doc, err := yamldoc.Parse(f.label, data)
	if err != nil {
		return nil, err
	}
	before, r := *c, reader{doc, f}
	if r.at("budget").Set() {
		c.Budget = budget.Amount{}
	}
	if r.at("run.budget").Set() {
		c.Run.Budget = budget.Amount{}
	}
	doc.Decode(c)
	r.checks(c.Checks)
	r.worktree(&c.Worktree)
	r.each("env.pass", c.Env.Pass, "the name of a variable", variableRE.MatchString)
	r.each("sandbox.write", c.Sandbox.Write, "an absolute path, or one below ~", isPath)
	r.each("sandbox.caches", c.Sandbox.Caches, "an absolute path, or one below ~", isPath)
	r.each("sandbox.hide", c.Sandbox.Hide, "an absolute path, or one below ~", func(s string) bool { return isPath(strings.TrimPrefix(s, "!")) })
	r.hosts(c.Sandbox.Network)
	c.Env.Asked = r.asked(before.Env, c.Env.Pass)
	r.word("default_model", c.DefaultModel)
	r.word("default_agent", c.DefaultAgent)
	r.routes(c.Routing)
	r.word("provider", c.Provider)
	r.word("grimoire", c.Grimoire)
	r.between(r.at("run.max_tasks"), c.Run.MaxTasks, 1, MaxTasks)
	r.between(r.at("landing.batch"), c.Landing.Batch, 1, MaxTasks)
	r.each("landing.allow", c.Landing.Allow, "a glob of paths in the repository", isGlobInside)
	r.landingTexts(c.Landing)
	r.between(r.at("agent.max_rounds"), c.Agent.MaxRounds, 1, maxRounds)
	r.queue(&c.Queue, before.Queue)
	if at := r.at("limits.same_call"); at.Set() && (c.Limits.SameCall < 0 || c.Limits.SameCall == 1) {
		doc.Fail(at, fmt.Sprintf("%d is neither 0 (off) nor at least 2", c.Limits.SameCall), "")
	}
	c.Budget.Check(doc, r.at("budget"))
	c.Run.Budget.Check(doc, r.at("run.budget"))
	c.BudgetPerDay.Amount().Check(doc, r.at("budget_per_day"))
	c.Prices = r.prices(before.Prices)
	r.rules(c.Permissions)
	r.notices(c.Notify)
	r.announced(c.Notices.On)
	r.telemetry(c.Telemetry)
	r.embeddings(c.Search.Embeddings)
	r.acp(c.ACP)
	r.usersOnly()
	return r.lines(), doc.Err()
}

// checks checks the items of checks.
func (r reader) checks(values []check.Check) {
	at := r.at("checks")
	items := r.doc.Items(at)
	for i, c := range values {
		if problem := c.Problem(); problem != "" && at.Set() && len(items) == len(values) {
			r.doc.Fail(items[i], problem, "")
		}
	}
}

// hosts checks the items of sandbox.network.
func (r reader) hosts(values Network) {
	const key = "sandbox.network"
	at := r.at(key)
	items := r.doc.Items(at)
	for i, v := range values {
		if _, err := egress.ParsePattern(v); err != nil && v != private && at.Set() && len(items) == len(values) {
			r.doc.Fail(items[i], err.Error(), "")
		}
	}
}

// isPath reports whether a setting is a valid path: /PATH, ~ or ~/PATH.
func isPath(s string) bool {
	return !strings.ContainsRune(s, 0) && (filepath.IsAbs(s) || s == "~" || strings.HasPrefix(s, "~/"))
}

// reader reads one file.
type reader struct {
	doc  *yamldoc.Document
	file file
}

// at returns the value of a key, such as run.max_tasks. The node is not set if the file does not
// contain the key.
func (r reader) at(key string) yamldoc.Node {
	node := r.doc.Root()
	for part := range strings.SplitSeq(key, ".") {
		node = r.doc.Key(node, part)
	}
	return node
}

// between checks that the number at a node is in a range. A node that is not set is valid.
func (r reader) between(at yamldoc.Node, n, least, most int) {
	if at.Set() && (n < least || n > most) {
		r.doc.Fail(at, fmt.Sprintf("%d is not between %d and %d", n, least, most), "")
	}
}

// lines returns the lines of the keys in the file.
func (r reader) lines() map[string]int {
	found := map[string]int{}
	for _, k := range keys() {
		if at := r.at(k.name); at.Set() {
			found[k.name], _ = r.doc.Where(at)
		}
	}
	return found
}

// each checks the items of a list.
func (r reader) each(key string, values []string, what string, ok func(string) bool) {
	at := r.at(key)
	items := r.doc.Items(at)
	for i, v := range values {
		if at.Set() && len(items) == len(values) && !ok(v) {
			r.doc.Fail(items[i], fmt.Sprintf("%q is not %s", v, what), "")
		}
	}
}

// word checks that the value of a key is a name.
func (r reader) word(key, value string) {
	if at := r.at(key); at.Set() && !wordRE.MatchString(value) {
		r.doc.Fail(at, fmt.Sprintf("%q is not a name", value), "")
	}
}

// asked returns the variables that require the user's trust after applying a file: those that only the
// repository names.
func (r reader) asked(before Env, pass []string) []string {
	if !r.at("env.pass").Set() {
		return before.Asked
	}
	if !r.file.theirs {
		return nil
	}
	own := slices.DeleteFunc(slices.Clone(before.Pass), func(name string) bool { return slices.Contains(before.Asked, name) })
	return slices.DeleteFunc(slices.Clone(pass), func(name string) bool { return slices.Contains(own, name) })
}

// usersOnly rejects keys of the user's file in a file of the repository. A user's file
// inside the repository counts as the repository's.
func (r reader) usersOnly() {
	hint := "move it to $XDG_CONFIG_HOME/coven/config.yaml"
	if !r.file.inside {
		hint = "this file is inside the repository: export XDG_CONFIG_HOME=DIR, outside of it"
	}
	for _, k := range keys() {
		if at := r.at(k.name); k.usersOnly && r.file.theirs && at.Set() {
			r.doc.Fail(at, k.name+" is allowed only in your own file", hint)
		}
	}
}
