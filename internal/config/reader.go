package config

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coven-run/coven/internal/budget"
	"github.com/coven-run/coven/internal/config/check"
	"github.com/coven-run/coven/internal/config/yamldoc"
	"github.com/coven-run/coven/internal/sandbox/egress"
	"github.com/coven-run/coven/internal/text/lazyregexp"
)

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
