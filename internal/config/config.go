// Package config reads coven's settings. Settings in the project's .coven/config.yaml override those in
// the user's $XDG_CONFIG_HOME/coven/config.yaml, which override the defaults, key by key. The project's file
// cannot raise the limits of the user's.
//
// The files are strict: an unknown key is an error with its line and column.
// docs/formats/config.md describes all keys.
package config

import (
	"slices"
	"time"

	"github.com/coven-run/coven/internal/budget"
	"github.com/coven-run/coven/internal/config/check"
	"github.com/coven-run/coven/internal/config/yamldoc"
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
	// On is the address of the server whose workers run the sessions; empty to run them on this machine.
	On string `yaml:"on" user:"true" about:"the server whose workers run the sessions that run.remote keeps: HOST:PORT"`
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
