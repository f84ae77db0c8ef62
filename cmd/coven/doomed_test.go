package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/process/failpoint"
	"github.com/coven-run/coven/internal/session"
)

type matrixKey struct{}

// cmdDoomed implements doomed KILL COMMAND: it runs a command that is killed at a crash point. Parallel
// tasks may reach the point less often than in the undisturbed play: then the command must succeed. If KILL
// is empty, it must succeed, too. With trace=FILE, the reached points are written to FILE.
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
		cmd.Env = append(cmd.Env, failpoint.TraceEnv+"="+trace)
	} else if kill != "" {
		cmd.Env = append(cmd.Env, failpoint.Env+"="+kill)
	}
	out, err := cmd.CombinedOutput()
	ts.Logf("[doomed at %q: %v]\n%s", kill, err, out)
	died := (*exec.ExitError)(nil)
	killed := ctx.Err() == nil && errors.As(err, &died) && died.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL
	switch {
	case err != nil && !killed || killed && kill == "":
		ts.Fatalf("%v: %v", args, err)
	case kill != "":
		ts.Value(matrixKey{}).(*matrix).count(killed)
	}
	if killed {
		ts.Setenv("KILLED", "1")
		awaitUnlocked(ts, cmd.Dir)
	}
}

// awaitUnlocked waits for the locks of a killed coven in the repository at dir: its git processes, and those that it was
// starting, hold them until they end. They do not hold turns, which stories take themselves.
func awaitUnlocked(ts *testscript.TestScript, dir string) {
	sessions, err := filepath.Glob(filepath.Join(dir, session.Dir, "*"))
	ts.Check(err)
	for _, of := range sessions {
		for deadline := time.Now().Add(patience); session.Busy(of) && time.Now().Before(deadline); {
			pause()
		}
	}
	locks, err := filepath.Glob(filepath.Join(dir, ".git", "coven", "locks", "*"))
	ts.Check(err)
	for _, lock := range locks {
		if strings.HasPrefix(filepath.Base(lock), "turn-") {
			continue
		}
		file, err := os.Open(lock)
		if err != nil {
			continue // its holder has removed it
		}
		for err = syscall.EINTR; errors.Is(err, syscall.EINTR); {
			err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX)
		}
		ts.Check(errors.Join(err, file.Close()))
	}
}

// cmdOutcome implements outcome FILE: the outcome of a story must be that of its undisturbed play.
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

// cmdOnce implements once REPO LEDGER: it reads all sessions of a repository. Each leaf must have one
// result and no later start, and each task must have been claimed, landed and closed once. A script that
// wrote its COVEN_STEP_KEY to the ledger must have run once, plus once for each time it was cut off.
func cmdOnce(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 2, "once REPO LEDGER")
	ran := map[string]int{}
	if data, err := os.ReadFile(ts.MkAbs(args[1])); err == nil {
		for _, key := range strings.Fields(string(data)) {
			ran[key]++
		}
	}
	journals, err := filepath.Glob(filepath.Join(ts.MkAbs(args[0]), session.Dir, "*", "events.jsonl"))
	ts.Check(err)
	for _, journal := range journals {
		events, err := event.Read(journal)
		ts.Check(err)
		if len(events) == 0 {
			continue // it never started
		}
		b := &book{
			ts: ts, name: filepath.Base(filepath.Dir(journal)),
			leaves: map[string]*leaf{}, types: map[event.Type]int{},
		}
		for _, e := range events {
			b.enter(e)
		}
		b.close(ran)
	}
	for key, n := range ran {
		ts.Fatalf("%d runs of a script that is in no journal: %s", n, key)
	}
}

// book is the state of a session's leaves according to its journal.
type book struct {
	ts     *testscript.TestScript
	name   string // of the session
	leaves map[string]*leaf
	types  map[event.Type]int
}

// leaf is one attempt of a leaf.
type leaf struct {
	kind string
	done bool // its result is recorded
	cut  int  // number of times its coven ended before that
}

func (b *book) enter(e event.Event) {
	b.types[e.Type]++
	l := b.leaves[e.Path]
	if l != nil && l.done && e.Type != event.Warning {
		b.ts.Fatalf("%s: %s of %s after its result", b.name, e.Type, e.Path)
	}
	switch e.Type {
	case event.SessionResumed:
		for _, open := range b.leaves {
			if !open.done {
				open.cut++
			}
		}
	case event.StepStarted:
		if l != nil {
			b.ts.Fatalf("%s: %s began twice", b.name, e.Path)
		}
		var start event.StepStart
		b.ts.Check(e.Decode(&start))
		b.leaves[e.Path] = &leaf{kind: start.Kind}
	case event.StepCompleted:
		if l == nil {
			b.ts.Fatalf("%s: a result of %s, which did not begin", b.name, e.Path)
		}
		l.done = true
	}
}

// close compares the book with the runs in the ledger, and removes its own from ran.
func (b *book) close(ran map[string]int) {
	for _, t := range []event.Type{event.SessionStarted, event.LandDone, event.SessionCompleted} {
		if b.types[t] != 1 {
			b.ts.Fatalf("%s: %d times %s", b.name, b.types[t], t)
		}
	}
	for path, l := range b.leaves {
		sum := sha256.Sum256([]byte(b.name + "\x00" + path))
		key := hex.EncodeToString(sum[:16])
		n := ran[key]
		if !l.done || n > 1+l.cut || n == 0 && l.kind == "script" {
			b.ts.Fatalf("%s: %s ran %d times and was cut off %d times (result: %v)", b.name, path, n, l.cut, l.done)
		}
		delete(ran, key)
	}
}
