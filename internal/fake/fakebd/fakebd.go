// Package fakebd is a fake of bd, the beads program, for tests.
//
// It takes the commands and flags that coven uses, prints the output of bd, and stores
// its tasks in a file instead of a database. Concurrent processes behave like those of
// the real program: each command is one transaction.
//
// It imitates Version, or the one in the environment variable FAKEBD_VERSION. For 1.0.5
// the contract test of this package compares it with captures of the real program. It
// differs from that version in later ones as their source does (see older); with
// COVEN_REAL_BD, a test compares it with the program there.
//
// It rejects unknown flags and commands, as bd does. It runs
// no other program: where bd runs git, it reads $GIT_AUTHOR_NAME and
// $GIT_AUTHOR_EMAIL, and finds the main checkout through the .git file.
//
// The environment variable FAKEBD_FAULT makes it misbehave, see fault. It records the
// maximum number of its concurrent processes, see MaxAtOnce.
package fakebd

import (
	"fmt"
	"io"
	"os"
	"time"
)

// Main runs one bd command with the arguments after the program's name, on
// the process's standard streams, and returns its exit code.
func Main(args []string) int {
	dir, err := os.Getwd()
	if err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		return 1
	}
	r := &run{env: os.Getenv, dir: dir, out: os.Stdout, errs: os.Stderr, now: time.Now}
	return r.main(args)
}

// run is one process.
type run struct {
	env  func(string) string
	dir  string
	out  io.Writer
	errs io.Writer
	now  func() time.Time

	flags flags
	beads string // the .beads directory; empty if there is none
	db    *database
}

// command is a command of bd.
type command struct {
	values, bools []string // flags: "limit", or "limit n" with its short form
	do            func(*run) int
	writes        bool // saves changes of the database
	bare          bool // needs no database
}

// commands returns the commands that coven uses, and a few for tests.
func commands() map[string]command {
	return map[string]command{
		"version":  {do: (*run).version, bare: true},
		"init":     {values: []string{"prefix p"}, bools: []string{"stealth", "skip-agents", "skip-hooks", "non-interactive", "from-jsonl"}, do: (*run).init, bare: true},
		"where":    {do: (*run).where},
		"context":  {do: (*run).context},
		"list":     {values: []string{"limit n", "status s", "type t", "assignee a"}, bools: []string{"all"}, do: (*run).list},
		"show":     {values: []string{"id"}, do: (*run).show},
		"ready":    {values: []string{"limit n", "exclude-type", "assignee a", "sort s"}, bools: []string{"unassigned u", "claim"}, do: (*run).ready, writes: true},
		"export":   {do: (*run).export},
		"comments": {do: (*run).comments},
		"create": {
			values: []string{
				"title", "type t", "priority p", "description d", "design", "acceptance", "notes", "labels l", "metadata",
				"external-ref", "estimate e", "deps", "assignee a", "parent", "id",
			},
			bools: []string{"silent"}, do: (*run).create, writes: true,
		},
		"update": {
			values: []string{"status s", "assignee a", "notes", "append-notes", "priority p", "title", "description d", "design", "acceptance", "add-label", "remove-label"},
			bools:  []string{"claim", "force"}, do: (*run).update, writes: true,
		},
		"close":   {values: []string{"reason r"}, bools: []string{"force f"}, do: (*run).close, writes: true},
		"reopen":  {values: []string{"reason r"}, do: (*run).reopen, writes: true},
		"comment": {do: (*run).comment, writes: true},
		"dep add": {values: []string{"type t"}, do: (*run).depend, writes: true},
		"import":  {do: (*run).importFile, writes: true},
	}
}

func (r *run) main(args []string) int {
	name, cmd, err := r.parse(args)
	if err != nil {
		return r.usage(name, err)
	}
	r.beads = r.findBeads()
	if r.beads != "" {
		leave := r.enter()
		defer leave()
	}
	fault, err := faultOf(r.env("FAKEBD_FAULT"), name)
	if err != nil {
		return r.complain(err.Error())
	}
	if code, over := fault.before(r); over {
		return code
	}
	code := r.perform(cmd)
	return fault.after(r, code)
}

// perform runs a command in a transaction.
func (r *run) perform(cmd command) int {
	if cmd.bare {
		return cmd.do(r)
	}
	unlock, err := r.open()
	if err != nil {
		return r.noDatabase()
	}
	defer unlock()
	code := cmd.do(r)
	if cmd.writes && r.db.changed {
		if err := r.db.save(); err != nil {
			return r.complain(err.Error())
		}
	}
	return code
}

func (r *run) noDatabase() int {
	r.warn("Error: no beads database found\n" +
		"Hint: run 'bd where' to inspect the resolved workspace, or 'bd init' to create a new database\n" +
		"      or set BEADS_DIR to point to your .beads directory\n")
	return 1
}

// actor returns the author of changes.
func (r *run) actor() string {
	for _, name := range []string{r.flags.value("actor"), r.env("BEADS_ACTOR"), r.env("BD_ACTOR"), r.env("GIT_AUTHOR_NAME"), r.env("USER")} {
		if name != "" {
			return name
		}
	}
	return "unknown"
}
