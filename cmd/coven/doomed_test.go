package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
	"syscall"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/coven-run/coven/internal/crash"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/session"
)

type matrixKey struct{}

// doomed KILL COMMAND runs a command that is killed at a crash point. Tasks that
// run at once take turns at a point: where it is not reached as often as in the
// undisturbed play, the command must succeed. KILL may be empty: then it must,
// too; with trace=FILE the points that it reaches are written down.
func cmdDoomed(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: doomed KILL COMMAND [ARG...]")
	}
	program, err := lookPath(args[1], ts.Getenv("PATH"))
	ts.Check(err)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args[2:]...)
	cmd.Dir = ts.MkAbs(".")
	cmd.Env = append(environment(ts), "LEDGER="+ts.Getenv("LEDGER"))
	kill := args[0]
	if trace, ok := strings.CutPrefix(kill, "trace="); ok {
		kill = ""
		cmd.Env = append(cmd.Env, crash.TraceEnv+"="+trace)
	} else if kill != "" {
		cmd.Env = append(cmd.Env, crash.Env+"="+kill)
	}
	out, err := cmd.CombinedOutput()
	ts.Logf("[doomed at %q: %v]\n%s", kill, err, out)
	died := (*exec.ExitError)(nil)
	switch {
	case err == nil && kill != "":
		ts.Logf("[%s was not reached]", kill)
	case err == nil:
	case ctx.Err() == nil && kill != "" && errors.As(err, &died) && died.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL:
	default:
		ts.Fatalf("%v: %v", args, err)
	}
}

// outcome FILE says that what came of a story is what came of its undisturbed
// play.
func cmdOutcome(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 1, "outcome FILE")
	m := ts.Value(matrixKey{}).(*matrix)
	is := ts.ReadFile(args[0])
	switch {
	case m.outcome == "":
		m.outcome = is
	case m.outcome != is:
		ts.Fatalf("what came of it:\n%s\nundisturbed:\n%s", is, m.outcome)
	}
}

// once REPO LEDGER reads all sessions of a repository: each leaf has one result
// and nothing of it began after that, each task was claimed, landed and closed;
// and a script that wrote its COVEN_STEP_KEY into the ledger ran once, or was
// cut off as often as it ran more.
func cmdOnce(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 2, "once REPO LEDGER")
	ran := map[string]int{}
	if data, err := os.ReadFile(ts.MkAbs(args[1])); err == nil {
		for _, key := range strings.Fields(string(data)) {
			ran[key]++
		}
	}
	dirs, err := filepath.Glob(filepath.Join(ts.MkAbs(args[0]), session.Dir, "*"))
	ts.Check(err)
	for _, dir := range dirs {
		events, err := event.Read(filepath.Join(dir, "events.jsonl"))
		ts.Check(err)
		b := &book{ts: ts, name: filepath.Base(dir), results: map[string]int{}, cut: map[string]int{}, open: map[string]bool{}, landed: map[string]int{}, ended: map[event.Type]int{}}
		for _, e := range events {
			b.enter(e)
		}
		b.close(ran)
	}
	for key, n := range ran {
		ts.Fatalf("%d runs of a script that is in no journal: %s", n, key)
	}
}

// book is what a journal says of the leaves of its session.
type book struct {
	ts      *testscript.TestScript
	name    string
	scripts []string
	results map[string]int
	open    map[string]bool // begun and without a result
	cut     map[string]int  // how often it was cut off
	landed  map[string]int
	ended   map[event.Type]int
}

func (b *book) enter(e event.Event) {
	if e.Path != "" && b.results[e.Path] > 0 && e.Type != event.Warning {
		b.ts.Fatalf("%s: %s of %s after its result", b.name, e.Type, e.Path)
	}
	b.ended[e.Type]++
	switch e.Type {
	case event.SessionResumed:
		for path := range b.open {
			b.cut[path]++
		}
	case event.StepStarted:
		var start event.StepStart
		b.ts.Check(e.Decode(&start))
		if b.open[e.Path] {
			b.ts.Fatalf("%s: %s began twice", b.name, e.Path)
		}
		b.open[e.Path] = true
		if start.Kind == "script" {
			b.scripts = append(b.scripts, e.Path)
		}
	case event.StepCompleted:
		if !b.open[e.Path] {
			b.ts.Fatalf("%s: a result of %s, which did not begin", b.name, e.Path)
		}
		delete(b.open, e.Path)
		b.results[e.Path]++
	case event.LandDone:
		b.landed[e.Path]++
	}
}

// close compares the book with what ran, and takes that out of it.
func (b *book) close(ran map[string]int) {
	for path := range b.open {
		b.ts.Fatalf("%s: %s has no result", b.name, path)
	}
	for _, t := range []event.Type{event.SessionStarted, event.LandDone, event.SessionCompleted} {
		if b.ended[t] != 1 {
			b.ts.Fatalf("%s: %d times %s", b.name, b.ended[t], t)
		}
	}
	sort.Strings(b.scripts)
	for _, path := range b.scripts {
		sum := sha256.Sum256([]byte(b.name + "\x00" + path))
		key := hex.EncodeToString(sum[:16])
		n, known := ran[key]
		if known && n > 1+b.cut[path] || !known && !strings.Contains(path, "run-tests") {
			b.ts.Fatalf("%s: %s ran %d times and was cut off %d times", b.name, path, n, b.cut[path])
		}
		delete(ran, key)
	}
}
