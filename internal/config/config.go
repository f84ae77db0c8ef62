// Package config reads coven's settings: .coven/config.yaml of the project over
// $XDG_CONFIG_HOME/coven/config.yaml of the user over the defaults, key by key.
//
// The files are strict: an unknown key is an error with its line and column.
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

// Errors lists everything that is wrong in the files.
type Errors = yamldoc.Errors

// Config is coven's settings.
type Config struct {
	Checks       []string      // commands that must pass before a change lands, in order; nil: detect them
	DefaultModel string        // the model that agents use
	Provider     string        // the provider that runs agents
	Grimoire     string        // the default workflow
	PriorAttempt bool          // give agents the summary of the session before
	Tracker      string        // where tasks live: auto, bd, br or jsonl
	Budget       budget.Amount // of runs whose grimoire sets none
	Prices       budget.Prices // of models whose CLI does not report the cost
	Run          Run
	Env          Env
	Timeouts     Timeouts
	Limits       Limits
	Notify       []Notice // commands that notify a person; the user's file only
	AllowUngated bool     // run agents whose tool calls bypass the gate; the user's file only
}

// Run is how tasks are run.
type Run struct {
	MaxTasks int           // how many at once
	Budget   budget.Amount // of all tasks of one coven run together
}

// Notice is a command that coven runs when a task changes its state.
type Notice struct {
	Command string   // given to sh -c
	On      []string // the states; empty: completed, and all that need a person
}

// Env selects the user's environment variables that agents and scripts get.
type Env struct {
	Pass []string // their names
	// Asked lists the variables of Pass that only the repository's file names. They
	// need the user's trust.
	Asked []string
}

// Timeouts limits every step.
type Timeouts struct {
	Idle time.Duration // a step without output for this long is stopped
}

// Limits ends a step or a run that makes no progress.
type Limits struct {
	MaxWait  time.Duration // how long a task waits for an account's rate limit
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

// Load reads the settings of a repository. root is its main checkout; where lists the
// places that authors of the repository control; getenv gives XDG_CONFIG_HOME and
// HOME. The error is an Errors if a file is invalid.
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

// file is a place for settings.
type file struct {
	dir, name string
	label     string // in errors
	inside    bool   // a link may not lead out of dir
	theirs    bool   // authors of the repository control the content
}

// files returns the places, weakest first.
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

// misnamed reports a config.yml, which would otherwise be ignored without notice.
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

// keys is a settings file.
type keys struct {
	Checks       yamldoc.At[[]text]        `yaml:"checks" about:"shell commands that must pass before a change lands, in order"`
	DefaultModel text                      `yaml:"default_model" about:"the model that agents use; sonnet"`
	Provider     text                      `yaml:"provider" about:"the provider that runs agents; claude"`
	Grimoire     text                      `yaml:"grimoire" about:"the default workflow; implement"`
	PriorAttempt yamldoc.At[bool]          `yaml:"prior_attempt" about:"tell agents how the previous session of the task ended; true"`
	Tracker      text                      `yaml:"tracker" oneof:"auto|bd|br|jsonl" about:"where tasks live; auto"`
	Budget       yamldoc.At[budget.Amount] `yaml:"budget" about:"of a run whose grimoire sets none"`
	Prices       yamldoc.At[pricesKeys]    `yaml:"prices" about:"of models whose CLI does not report the cost"`
	Run          struct {
		MaxTasks yamldoc.At[int]           `yaml:"max_tasks" about:"how many tasks run at once, 1 to 64; 3"`
		Budget   yamldoc.At[budget.Amount] `yaml:"budget"`
	} `yaml:"run" about:"how tasks are run"`
	Env struct {
		Pass yamldoc.At[[]text] `yaml:"pass" about:"names of additional variables"`
	} `yaml:"env" about:"environment variables for agents and scripts"`
	Timeouts struct {
		Idle yamldoc.At[time.Duration] `yaml:"idle" about:"a step that prints nothing for this long is stopped; 10m"`
	} `yaml:"timeouts" about:"limits of every step"`
	Limits       limits               `yaml:"limits" about:"of accounts and agents"`
	Notify       yamldoc.At[[]notice] `yaml:"notify" about:"commands that notify you when a task changes its state; the user's file only"`
	AllowUngated yamldoc.At[bool]     `yaml:"allow_ungated" about:"run agents whose tool calls coven cannot stop (codex, qwen); the user's file only; false"`
}

type text = yamldoc.At[string]

// apply applies a file. It changes only settings that the file contains.
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

// over returns the environment settings of a file on top of the previous ones.
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

// list returns the given list, or the previous one. A file replaces a list and never
// appends to it; an empty list stays empty.
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

// word returns the given word, or the previous one.
func word(doc *yamldoc.Document, given text, before string) string {
	if given.Set() && !wordRE.MatchString(given.Value) {
		doc.Fail(given, fmt.Sprintf("%q is not a name", given.Value), "")
	}
	return given.Or(before)
}
