// Package config reads coven's settings: .coven/config.yaml of the project over
// $XDG_CONFIG_HOME/coven/config.yaml of the user over the defaults, key by key.
//
// The files are strict: what is not known is an error with its line and column.
// Every key is described in docs/formats/config.md.
package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/coven-run/coven/internal/budget"
	"github.com/coven-run/coven/internal/regularfile"
	"github.com/coven-run/coven/internal/trust"
	"github.com/coven-run/coven/internal/yamldoc"
)

// Errors is everything that is wrong in the files.
type Errors = yamldoc.Errors

// Config is coven's settings.
type Config struct {
	Checks       []string      // commands that must pass before a change lands, in order; nil: detect them
	DefaultModel string        // what agents are asked to use
	Provider     string        // who drives agents
	Grimoire     string        // the workflow of tasks that choose none
	PriorAttempt bool          // give agents the summary of the session before
	Tracker      string        // where tasks live: auto, bd, br or jsonl
	Budget       budget.Amount // of runs whose grimoire sets none
	Prices       budget.Prices // of models whose CLI does not say what they cost
	Run          Run
	Env          Env
	Timeouts     Timeouts
	Limits       Limits
	Notify       []Notice // commands that notify a person; of the user's file only
	AllowUngated bool     // run agents whose tool calls do not pass the gate; of the user's file only
}

// Run is how tasks are run.
type Run struct {
	MaxTasks int           // how many at once
	Budget   budget.Amount // of all tasks of one coven run together
}

// Notice is a command that coven runs when a task changes its state.
type Notice struct {
	Command string   // given to sh -c
	On      []string // the states; empty: all that want a person, and completed
}

// Env selects what of the user's environment is passed on.
type Env struct {
	Pass []string // names of variables that agents and scripts get
	// Asked are those of Pass that only a file of the repository names: they need the
	// user's trust.
	Asked []string
}

// Timeouts are the limits that hold for every step.
type Timeouts struct {
	Idle time.Duration // a step without output for this long is stopped
}

// Limits are what ends a step, or a run, that gets nowhere.
type Limits struct {
	MaxWait  time.Duration // the longest that a task waits for an account's rate limit
	SameCall int           // how often in a row an agent may make the same call with the same result; 0: any number
}

// Default returns the default settings.
func Default() Config {
	return Config{
		DefaultModel: "sonnet", Provider: "claude", Grimoire: "implement", PriorAttempt: true, Tracker: "auto",
		Prices: budget.DefaultPrices(), Run: Run{MaxTasks: 3}, Timeouts: Timeouts{Idle: 10 * time.Minute},
		Limits: Limits{MaxWait: 6 * time.Hour, SameCall: 5},
	}
}

const (
	fileName = "config.yaml"
	maxFile  = 1 << 20
)

// Load reads the settings of a repository. root is its main checkout, where is what
// those who write the repository decide about; getenv gives XDG_CONFIG_HOME and HOME.
// The error is an Errors when a file is wrong.
func Load(root string, where trust.UntrustedPaths, getenv func(string) string) (Config, error) {
	c := Default()
	var all Errors
	for _, f := range files(root, getenv) {
		f.theirs = f.inside || where.Contains(filepath.Join(f.dir, f.name))
		all = append(all, f.misnamed()...)
		data, err := f.read()
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return Config{}, fmt.Errorf("read %s: %w", f.label, err)
		}
		err = c.apply(f, data)
		if found := Errors(nil); errors.As(err, &found) {
			all = append(all, found...)
		}
	}
	if len(all) > 0 {
		return Config{}, all
	}
	return c, nil
}

// file is a place where settings can be.
type file struct {
	dir, name string
	label     string // in errors
	inside    bool   // a link may not lead out of dir
	theirs    bool   // those who write the repository decide what is in it
}

// files are the places, the weakest first.
func files(root string, getenv func(string) string) []file {
	dir := getenv("XDG_CONFIG_HOME")
	if home := getenv("HOME"); !filepath.IsAbs(dir) && filepath.IsAbs(home) {
		dir = filepath.Join(home, ".config")
	}
	project := path.Join(".coven", fileName)
	all := []file{{dir: root, name: project, label: project, inside: true}}
	if filepath.IsAbs(dir) {
		dir = filepath.Join(dir, "coven")
		all = slices.Insert(all, 0, file{dir: dir, name: fileName, label: filepath.Join(dir, fileName)})
	}
	return all
}

// misnamed finds a config.yml, which would be passed over in silence.
func (f file) misnamed() Errors {
	yml := func(name string) string { return strings.TrimSuffix(name, ".yaml") + ".yml" }
	if _, err := os.Lstat(filepath.Join(f.dir, yml(f.name))); err != nil {
		return nil //nolint:nilerr // there is no such file
	}
	return Errors{{File: yml(f.label), Line: 1, Column: 1, Msg: "coven does not read this file", Hint: "rename it to " + fileName}}
}

func (f file) read() ([]byte, error) {
	opened, err := f.open()
	if err != nil {
		return nil, err
	}
	defer func() { _ = opened.Close() }()
	data, err := io.ReadAll(io.LimitReader(opened, maxFile+1))
	if err == nil && len(data) > maxFile {
		err = fmt.Errorf("it is larger than %d bytes", maxFile)
	}
	return data, err
}

func (f file) open() (*os.File, error) {
	if f.inside {
		return regularfile.OpenIn(f.dir, f.name)
	}
	return regularfile.Open(filepath.Join(f.dir, f.name))
}

// keys are the settings as a file has them.
type keys struct {
	Checks       yamldoc.At[[]text]      `yaml:"checks" about:"shell commands that must pass before a change lands, in order"`
	DefaultModel text                    `yaml:"default_model" about:"what agents are asked to use; sonnet"`
	Provider     text                    `yaml:"provider" about:"who drives agents; claude"`
	Grimoire     text                    `yaml:"grimoire" about:"the workflow of tasks that choose none; implement"`
	PriorAttempt yamldoc.At[bool]        `yaml:"prior_attempt" about:"tell agents what the session before came to; true"`
	Tracker      text                    `yaml:"tracker" oneof:"auto|bd|br|jsonl" about:"where tasks live; auto"`
	Budget       yamldoc.At[budget.Keys] `yaml:"budget" about:"of a run whose grimoire sets none"`
	Prices       yamldoc.At[pricesKeys]  `yaml:"prices" about:"of models whose CLI does not say what they cost"`
	Run          struct {
		MaxTasks yamldoc.At[int]         `yaml:"max_tasks" about:"how many tasks run at once, 1 to 64; 3"`
		Budget   yamldoc.At[budget.Keys] `yaml:"budget"`
	} `yaml:"run" about:"how tasks are run"`
	Env struct {
		Pass yamldoc.At[[]text] `yaml:"pass" about:"names of variables that agents and scripts get in addition"`
	} `yaml:"env" about:"what of the environment is passed on"`
	Timeouts struct {
		Idle yamldoc.At[time.Duration] `yaml:"idle" about:"a step that prints nothing for this long is stopped; 10m"`
	} `yaml:"timeouts" about:"limits that hold for every step"`
	Limits       limits               `yaml:"limits" about:"of accounts and agents"`
	Notify       yamldoc.At[[]notice] `yaml:"notify" about:"commands that tell you when a task changes its state; of the user only"`
	AllowUngated yamldoc.At[bool]     `yaml:"allow_ungated" about:"run agents whose tool calls coven cannot stop (codex, qwen); of the user only; false"`
}

type text = yamldoc.At[string]

// apply takes in a file. It changes only what the file gives.
func (c *Config) apply(f file, data []byte) error {
	doc, err := yamldoc.Parse(f.label, data)
	if err != nil {
		return err
	}
	var k keys
	doc.Decode(&k)
	c.Checks = list(doc, k.Checks, c.Checks, "a check", func(s string) bool { return strings.TrimSpace(s) != "" })
	c.Env = c.Env.over(doc, f, k.Env.Pass)
	c.DefaultModel = word(doc, k.DefaultModel, c.DefaultModel)
	c.Provider = word(doc, k.Provider, c.Provider)
	c.Grimoire = word(doc, k.Grimoire, c.Grimoire)
	c.PriorAttempt = k.PriorAttempt.Or(c.PriorAttempt)
	c.Timeouts.Idle = k.Timeouts.Idle.Or(c.Timeouts.Idle)
	c.Tracker = k.Tracker.Or(c.Tracker)
	if k.Run.MaxTasks.Set() && (k.Run.MaxTasks.Value < 1 || k.Run.MaxTasks.Value > MaxTasks) {
		doc.Fail(k.Run.MaxTasks, fmt.Sprintf("%d is not between 1 and %d", k.Run.MaxTasks.Value, MaxTasks), "")
	}
	c.Run.MaxTasks = k.Run.MaxTasks.Or(c.Run.MaxTasks)
	c.Budget = amount(doc, k.Budget, c.Budget)
	c.Run.Budget = amount(doc, k.Run.Budget, c.Run.Budget)
	c.Prices = prices(doc, k.Prices, c.Prices)
	c.Limits = k.Limits.over(doc, c.Limits)
	c.Notify = notices(doc, f, k.Notify, c.Notify)
	if usersOnly(doc, f, k.AllowUngated, "allow_ungated") {
		c.AllowUngated = k.AllowUngated.Or(c.AllowUngated)
	}
	return doc.Err()
}

var (
	variableRE = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	wordRE     = regexp.MustCompile(`^[^\s\pC-][^\s\pC]*$`)
)

// over is what a file makes of the names from before.
func (e Env) over(doc *yamldoc.Document, f file, given yamldoc.At[[]text]) Env {
	pass := list(doc, given, e.Pass, "the name of a variable", variableRE.MatchString)
	if !given.Set() {
		return e
	}
	if !f.theirs {
		return Env{Pass: pass}
	}
	own := slices.DeleteFunc(slices.Clone(e.Pass), func(name string) bool { return slices.Contains(e.Asked, name) })
	asked := slices.DeleteFunc(slices.Clone(pass), func(name string) bool { return slices.Contains(own, name) })
	return Env{Pass: pass, Asked: asked}
}

// list returns the given list, or the one from before. Lists are replaced, not
// added to; an empty one stays one.
func list(doc *yamldoc.Document, given yamldoc.At[[]text], before []string, what string, ok func(string) bool) []string {
	if !given.Set() {
		return before
	}
	values := make([]string, len(given.Value))
	for i, v := range given.Value {
		if v.Set() && !ok(v.Value) {
			doc.Fail(v, fmt.Sprintf("%q is not %s", v.Value, what), "")
		}
		values[i] = v.Value
	}
	return values
}

// word returns the given word, or the one from before.
func word(doc *yamldoc.Document, given text, before string) string {
	if given.Set() && !wordRE.MatchString(given.Value) {
		doc.Fail(given, fmt.Sprintf("%q is not a name", given.Value), "")
	}
	return given.Or(before)
}
