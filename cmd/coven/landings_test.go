package main

import (
	"context"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/coven-run/coven/internal/exit"
)

// tamper lists the stories that change receipts or journals.
var tamper = map[string]bool{"verify": true, "verifymany": true, "verifyaction": true, "verifyreplay": true, "damagedrecords": true, "recordsdamaged": true}

// landings verifies the receipts of the changes that landed in stories.
type landings struct {
	t        *testing.T
	mu       sync.Mutex
	verified int
	kinds    map[string]int // by point and result, such as "signature ok"
}

// watchLandings returns landings. The test fails if fewer receipts than least were verified, unless it plays only some of the stories.
func watchLandings(t *testing.T, least int) *landings {
	t.Helper()
	l := &landings{t: t, kinds: map[string]int{}}
	t.Cleanup(func() {
		t.Logf("%d receipts verified: %v", l.verified, l.kinds)
		all := !racing && !strings.Contains(flag.Lookup("test.run").Value.String(), "/")
		if all && l.verified < least {
			t.Errorf("only %d receipts in the stories", l.verified)
		}
	})
	return l
}

// seal seals a script, and verifies the receipts in its repositories when it ends.
func (l *landings) seal(env *testscript.Env) error {
	if err := seal(env); err != nil {
		return err
	}
	if !tamper[strings.TrimPrefix(filepath.Base(env.WorkDir), "script-")] {
		env.Defer(func() { l.verify(env) })
	}
	return nil
}

// verify verifies the receipt of the last landing in each repository of a story, and with COVEN_LONG those of all landings.
// It leaves out repositories whose settings the story has broken.
func (l *landings) verify(env *testscript.Env) {
	for _, repo := range repositories(env.WorkDir) {
		list, _ := l.command(env, repo, "git", "notes", "--ref=coven", "list")
		noted := map[string]bool{}
		for i, word := range strings.Fields(list) {
			noted[word] = i%2 == 1
		}
		history, _ := l.command(env, repo, "git", "rev-list", "--all")
		for commit := range strings.SplitSeq(history, "\n") {
			if !noted[commit] {
				continue
			}
			out, code := l.command(env, repo, "coven", "verify", commit)
			if code != exit.Usage {
				l.count(filepath.Base(env.WorkDir)+", commit "+commit, out, code)
			}
			if os.Getenv("COVEN_LONG") == "" {
				break
			}
		}
	}
}

// repositories returns the repositories in the directory of a story, without the worktrees of tasks.
func repositories(dir string) (all []string) {
	for _, pattern := range []string{"*", "*/*"} {
		found, _ := filepath.Glob(filepath.Join(dir, pattern, ".git"))
		for _, git := range found {
			if info, err := os.Lstat(git); err == nil && info.IsDir() {
				all = append(all, filepath.Dir(git))
			}
		}
	}
	return all
}

func (l *landings) count(what, out string, code int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if code != 0 {
		l.t.Errorf("%s: coven verify ended with exit code %d\n%s", what, code, out)
		return
	}
	l.verified++
	for line := range strings.SplitSeq(out, "\n") {
		if words := strings.Fields(line); strings.HasPrefix(line, "  ") && len(words) > 2 {
			l.kinds[words[1]+" "+words[0]]++
		}
	}
}

// command runs a program in the environment of a story.
func (l *landings) command(env *testscript.Env, dir, name string, args ...string) (out string, code int) {
	program, err := lookPath(name, env.Getenv("PATH"))
	if err != nil {
		l.t.Error(err)
		return "", -1
	}
	cmd := exec.CommandContext(context.Background(), program, args...)
	cmd.Dir, cmd.Env = dir, env.Vars
	text, err := cmd.CombinedOutput()
	if ended, ok := errors.AsType[*exec.ExitError](err); ok {
		return string(text), ended.ExitCode()
	}
	if err != nil {
		l.t.Error(err)
	}
	return string(text), 0
}
