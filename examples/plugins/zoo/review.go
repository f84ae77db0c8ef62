package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/coven-run/coven/plugins/hostservice"
	"github.com/coven-run/coven/plugins/model"
	"github.com/coven-run/coven/plugins/reviewer"
)

// review is a reviewer implemented by one function.
type review func(ctx context.Context, change reviewer.Change, host hostservice.Services) (reviewer.Review, error)

// Review implements reviewer.Reviewer.
func (r review) Review(ctx context.Context, change reviewer.Change, host hostservice.Services) (reviewer.Review, error) {
	return r(ctx, change, host)
}

// reviews lists the beasts that use the SDK.
var reviews = map[string]review{
	"well":        pass,
	"chatter":     pass,
	"plain":       pass,
	"stubborn":    stubborn,
	"environment": environment,
	"never":       never,
	"late":        late,
	"quits":       quits,
	"panics":      panics,
	"talker":      talker,
	"frozen":      frozen,
	"leaver":      leaver,
	"writer":      writer,
	"burglar":     burglar,
	"crowd":       crowd,
	"asker":       asker,
	"critic":      critic,
	"flatterer":   flatterer,

	"severity": finds(reviewer.Finding{Severity: "catastrophic", Message: "m"}),
	"absolute": finds(reviewer.Finding{Severity: reviewer.Error, File: "/etc/passwd", Message: "m"}),
	"dotdot":   finds(reviewer.Finding{Severity: reviewer.Error, File: "a/../../b", Message: "m"}),
	"verdict": func(context.Context, reviewer.Change, hostservice.Services) (reviewer.Review, error) {
		return reviewer.Review{Verdict: "maybe"}, nil
	},
}

func pass(_ context.Context, change reviewer.Change, _ hostservice.Services) (reviewer.Review, error) {
	return passed(change.Task.Title)
}

func passed(summary string) (reviewer.Review, error) {
	return reviewer.Review{Verdict: reviewer.Pass, Summary: summary}, nil
}

func finds(f reviewer.Finding) review {
	return func(context.Context, reviewer.Change, hostservice.Services) (reviewer.Review, error) {
		return reviewer.Review{Verdict: reviewer.Pass, Findings: []reviewer.Finding{f}}, nil
	}
}

// environment returns its environment.
func environment(context.Context, reviewer.Change, hostservice.Services) (reviewer.Review, error) {
	stdin, err := os.Readlink("/proc/self/fd/0")
	if err != nil {
		return reviewer.Review{}, err
	}
	dir, _ := os.Getwd()
	return passed("STDIN=" + stdin + "\nDIR=" + dir + "\n" + strings.Join(os.Environ(), "\n"))
}

func stubborn(ctx context.Context, change reviewer.Change, host hostservice.Services) (reviewer.Review, error) {
	signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	return pass(ctx, change, host)
}

func never(context.Context, reviewer.Change, hostservice.Services) (reviewer.Review, error) {
	hang()
	panic("it does not end")
}

func late(ctx context.Context, change reviewer.Change, host hostservice.Services) (reviewer.Review, error) {
	if change.Task.Title == "late" {
		<-ctx.Done()
		<-time.After(time.Second) // the deadline is earlier here than in the host
	}
	return pass(ctx, change, host)
}

func quits(ctx context.Context, change reviewer.Change, host hostservice.Services) (reviewer.Review, error) {
	if change.Task.Title == "quit" {
		_, _ = syscall.Write(2, []byte("I have had enough\n"))
		os.Exit(7)
	}
	return pass(ctx, change, host)
}

// quitter is a model that exits during a turn.
type quitter struct{}

// Turn implements model.Model.
func (quitter) Turn(_ context.Context, request model.Request, emit func(model.Event) error) error {
	if err := emit(model.Text{Text: "I was about to"}); err != nil {
		return err
	}
	if request.Model == "quit" {
		os.Exit(7)
	}
	return emit(model.End{Reason: model.Done})
}

func panics(context.Context, reviewer.Change, hostservice.Services) (reviewer.Review, error) {
	panic("the beast panics")
}

func talker(ctx context.Context, change reviewer.Change, host hostservice.Services) (reviewer.Review, error) {
	var all sync.WaitGroup
	all.Go(func() { spill(1) })
	all.Go(func() { spill(2) })
	all.Go(func() { // its output is sent to coven as gRPC messages
		for range 1 << 10 {
			fmt.Println(strings.Repeat("y", 1<<14))
		}
	})
	all.Wait()
	return pass(ctx, change, host)
}

func frozen(ctx context.Context, change reviewer.Change, host hostservice.Services) (reviewer.Review, error) {
	if change.Task.Title == "freeze" {
		_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
		hang() // until the kill takes effect
	}
	return pass(ctx, change, host)
}

// leaver leaves a process behind that holds its standard streams.
func leaver(ctx context.Context, change reviewer.Change, host hostservice.Services) (reviewer.Review, error) {
	if err := spawn("child"); err != nil {
		return reviewer.Review{}, err
	}
	return pass(ctx, change, host)
}

func spawn(generation string) error {
	cmd := exec.Command(os.Args[0], generation) //nolint:noctx // deliberately never stopped
	cmd.Stdout, cmd.Stderr = os.NewFile(1, "stdout"), os.NewFile(2, "stderr")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if generation == "child" {
		return cmd.Run()
	}
	return cmd.Start()
}

// descend runs leaver's descendants.
func descend(generation string) bool {
	switch generation {
	case "child":
		if err := spawn("grandchild"); err != nil {
			panic(err)
		}
	case "grandchild":
		signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
		hang()
	default:
		return false
	}
	return true
}

func writer(ctx context.Context, change reviewer.Change, host hostservice.Services) (reviewer.Review, error) {
	if err := os.WriteFile(filepath.Join(change.Dir, "beast.txt"), []byte("was here\n"), 0o600); err != nil {
		return reviewer.Review{}, err
	}
	return pass(ctx, change, host)
}

// burglar reads the paths in its options and returns the answers.
func burglar(ctx context.Context, change reviewer.Change, host hostservice.Services) (reviewer.Review, error) {
	var told []string
	for _, f := range change.Files {
		content, err := host.ReadFile(ctx, f.Path)
		word := "read " + string(content)
		switch {
		case errors.Is(err, fs.ErrPermission):
			word = "forbidden"
		case errors.Is(err, fs.ErrNotExist):
			word = "not there"
		case err != nil:
			word = err.Error()
		}
		told = append(told, f.Path+": "+word)
	}
	return passed(strings.Join(told, "\n"))
}

// crowd uses each of coven's services ten times concurrently.
func crowd(ctx context.Context, change reviewer.Change, host hostservice.Services) (reviewer.Review, error) {
	errs := make([]error, 10)
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() {
			_, err := host.ReadFile(ctx, change.Files[0].Path)
			_, err2 := host.Diff(ctx)
			_, err3 := host.RunAgent(ctx, hostservice.Ask{Prompt: fmt.Sprint(i)})
			errs[i] = errors.Join(err, err2, err3, host.Log(ctx, fmt.Sprintf("place %d", i)))
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return reviewer.Review{}, err
	}
	return pass(ctx, change, host)
}

// asker answers while its request to an agent is still pending.
func asker(_ context.Context, change reviewer.Change, host hostservice.Services) (reviewer.Review, error) {
	begun := make(chan struct{})
	go func() {
		close(begun)
		_, _ = host.RunAgent(context.Background(), hostservice.Ask{Prompt: "go on for ever"})
	}()
	<-begun
	_, err := host.Diff(context.Background(), "wait for the agent")
	if err != nil {
		return reviewer.Review{}, err
	}
	return passed(change.Task.Title)
}
