package worktree

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coven-run/coven/worktree/commit"
	"github.com/coven-run/coven/worktree/diff"
	"github.com/coven-run/coven/worktree/integrate"
	"github.com/coven-run/coven/worktree/internal/content"
	"github.com/coven-run/coven/worktree/land"
	"github.com/coven-run/coven/worktree/rescue"
	"github.com/coven-run/coven/worktree/snapshot"
)

// runHook runs a hook without a fence, which tests do not need.
func runHook(ctx context.Context, h commit.Hook) ([]byte, error) {
	cmd := exec.CommandContext(ctx, h.Path, h.Args...)
	cmd.Dir, cmd.Env = h.Dir, append(os.Environ(), h.Env...)
	cmd.Stdin = bytes.NewReader(h.Input)
	return cmd.CombinedOutput()
}

func hook(t testing.TB, path, script string) {
	t.Helper()
	write(t, path, "#!/bin/sh\n"+script)
	must(t, os.Chmod(path, 0o755))
}

func TestCommitKeepsReservedPathsOfTarget(t *testing.T) {
	r := sample(t)
	ctx := t.Context()
	w := add(t, r, "T")
	write(t, filepath.Join(w.Path, ".beads/issues.jsonl"), "agent\n")
	write(t, filepath.Join(w.Path, ".coven/sessions/s/session.md"), "agent\n")
	gitIn(t, w.Path, "add", "-A")
	gitIn(t, w.Path, "commit", "-qm", "the agent's own")
	own := gitIn(t, w.Path, "rev-parse", "HEAD")
	write(t, filepath.Join(r.Root, ".beads/issues.jsonl"), "v2\n")
	gitIn(t, r.Root, "commit", "-qam", "tracker")

	c := commitAll(t, w, "put back")
	equal(t, "parent", gitIn(t, r.Root, "rev-parse", c.Oid+"^"), own)
	equal(t, "tracker", gitIn(t, r.Root, "show", c.Oid+":.beads/issues.jsonl"), "v2")
	equal(t, "changed", strings.Join(c.Files, " "), ".beads/issues.jsonl .coven/sessions/s/session.md")
	equal(t, "bytes in W", read(t, filepath.Join(w.Path, ".beads/issues.jsonl")), "agent\n")
	equal(t, "tree", value[string](t)(content.Tree(ctx, w)), c.Tree)
	equal(t, "nothing to review", len(value[diff.Diff](t)(diff.Of(ctx, w, "main")).Files), 1)
}

func TestCommitTakesWhatTheBranchTracks(t *testing.T) {
	r := sample(t)
	w := add(t, r, "T")
	write(t, filepath.Join(w.Path, "forced.log"), "1\n")
	gitIn(t, w.Path, "add", "-f", "forced.log")
	gitIn(t, w.Path, "commit", "-qm", "own")
	write(t, filepath.Join(w.Path, "forced.log"), "2\n")
	c := commitAll(t, w, "second")
	equal(t, "files", strings.Join(c.Files, " "), "forced.log")
}

func TestCommitMessage(t *testing.T) {
	trailers := []string{"Coven-Task: T", "Coven-Session:  s\n"}
	want := "Coven-Task: T\nCoven-Session: s\n"
	equal(t, "plain", commit.WithTrailers("subject", trailers), "subject\n\n"+want)
	equal(t, "body", commit.WithTrailers("subject\n\nbody: of text\nmore", trailers), "subject\n\nbody: of text\nmore\n\n"+want)
	equal(t, "present", commit.WithTrailers("subject\n\nCoven-Task: T\n", trailers), "subject\n\n"+want)
	equal(t, "subject like a trailer", commit.WithTrailers("fix: x", trailers), "fix: x\n\n"+want)
	equal(t, "none", commit.WithTrailers("subject\n", nil), "subject\n")

	r := sample(t)
	w := add(t, r, "T")
	_, err := commit.Create(t.Context(), w, commit.Request{Message: " \n"})
	if err == nil {
		t.Fatal("an empty message was taken")
	}
	write(t, filepath.Join(w.Path, "a"), "a")
	c := value[commit.Commit](t)(commit.Create(t.Context(), w, commit.Request{
		Message: "bad \xff\x00 bytes", Trailers: trailers, TargetTip: targetOf(r, t).Tip,
	}))
	equal(t, "message", gitIn(t, r.Root, "log", "-1", "--format=%B", c.Oid), "bad \uFFFD bytes\n\n"+want)
}

func TestCommitWithoutIdentity(t *testing.T) {
	for _, name := range []string{"GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"} {
		t.Setenv(name, "Ada")
	}
	r := sample(t)
	for _, name := range []string{"GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL", "EMAIL"} {
		t.Setenv(name, "")
		must(t, os.Unsetenv(name))
	}
	gitIn(t, r.Root, "config", "user.useConfigOnly", "true")
	w := add(t, r, "T")
	write(t, filepath.Join(w.Path, "a"), "a")
	c := commitAll(t, w, "m")
	equal(t, "fallback", gitIn(t, r.Root, "log", "-1", "--format=%an %ae %cn", c.Oid), "coven coven@localhost coven")
	gitIn(t, r.Root, "config", "user.name", "Grace")
	gitIn(t, r.Root, "config", "user.email", "grace@example.com")
	write(t, filepath.Join(w.Path, "b"), "b")
	c = commitAll(t, w, "m")
	equal(t, "configured", gitIn(t, r.Root, "log", "-1", "--format=%an %ae %cn", c.Oid), "Grace grace@example.com Grace")
}

func TestCommitStoresNestedRepositoriesAsFiles(t *testing.T) {
	r := sample(t)
	w := add(t, r, "T")
	for _, dir := range []string{"nested", "nested/inner", "committed"} {
		gitIn(t, w.Path, "init", "-q", dir)
		write(t, filepath.Join(w.Path, dir, "a"), dir)
		write(t, filepath.Join(w.Path, dir, "x.log"), "ignored by the rules around it")
		write(t, filepath.Join(w.Path, dir, "own.tmp"), "ignored by its own rule")
		write(t, filepath.Join(w.Path, dir, ".gitignore"), "*.tmp\n")
	}
	gitIn(t, filepath.Join(w.Path, "committed"), "add", "-A")
	gitIn(t, filepath.Join(w.Path, "committed"), "commit", "-qm", "inside")
	gitIn(t, w.Path, "add", "committed") // git adds it as a link
	gitIn(t, w.Path, "commit", "-qm", "own")
	commitAll(t, w, "m")
	got := gitIn(t, r.Root, "diff-tree", "-r", "--name-only", "main", w.Branch)
	want := "committed/.gitignore\ncommitted/a\nnested/.gitignore\nnested/a\nnested/inner/.gitignore\nnested/inner/a"
	equal(t, "files", got, want)
	again := value[commit.Commit](t)(commit.Create(t.Context(), w, commit.Request{Message: "m", TargetTip: targetOf(r, t).Tip}))
	equal(t, "again empty", again.Empty, true)
}

func TestSubmodules(t *testing.T) {
	lib := sample(t)
	r := sample(t)
	ctx := t.Context()
	gitIn(t, r.Root, "-c", "protocol.file.allow=always", "submodule", "add", "-q", lib.Root, "sub")
	gitIn(t, r.Root, "commit", "-qm", "submodule")
	w := add(t, r, "T")
	write(t, filepath.Join(w.Path, "a"), "a")
	c := commitAll(t, w, "empty submodule")
	equal(t, "files", strings.Join(c.Files, " "), "a")

	gitIn(t, w.Path, "-c", "protocol.file.allow=always", "submodule", "update", "-q", "--init")
	first := value[snapshot.Snapshot](t)(snapshot.Take(ctx, w, "s", ""))
	write(t, filepath.Join(w.Path, "sub/file0.txt"), "changed inside")
	write(t, filepath.Join(w.Path, "b"), "b")
	c = commitAll(t, w, "dirty submodule")
	equal(t, "files", strings.Join(c.Files, " "), "b")
	value[snapshot.Snapshot](t)(snapshot.Revert(ctx, w, "s", first.N))
	equal(t, "reverted inside", read(t, filepath.Join(w.Path, "sub/file0.txt")), "one\ntwo\nthree 0\n")
	value[snapshot.Snapshot](t)(snapshot.Revert(ctx, w, "s", first.N+1))
	equal(t, "and back", read(t, filepath.Join(w.Path, "sub/file0.txt")), "changed inside")
	gitIn(t, filepath.Join(w.Path, "sub"), "commit", "-qam", "inside")
	c = commitAll(t, w, "moved submodule")
	equal(t, "files", strings.Join(c.Files, " "), "sub")
	_, err := integrate.Merge(ctx, w, targetOf(r, t))
	runShell(t, wantError[*integrate.GitlinkError](t, err).Next)
	value[integrate.Landing](t)(landTask(t, w, value[integrate.Landing](t)(integrate.Merge(ctx, w, targetOf(r, t))), land.Squash))
	ref := value[string](t)(Remove(ctx, w, RemoveRequest{Landed: landedTip(t, w)}))
	if !strings.Contains(rescuedFiles(t, r, ref), rescue.GitDirName+"/modules/sub/") {
		t.Fatal("the commits inside the submodule were not rescued")
	}
}

func TestCommitSuspects(t *testing.T) {
	r := sample(t)
	ctx := t.Context()
	w := add(t, r, "T")
	key := "-----BEGIN RSA " + "PRIVATE KEY-----\nMIIE\n"
	files := map[string]string{
		".env": "A=1", "conf/.env.local": "A=1", "id_ed25519": "x", "key.pem": key, "cert.pem": "a certificate",
		"aws.txt": "AKIA" + "ABCDEFGHIJKLMNOP", "doc.txt": "AKIA" + "IOSFODNN7EXAMPLE", ".env.example": "A=",
		"gh.txt": "ghp_" + strings.Repeat("a", 36), "ant.txt": "sk-ant-" + strings.Repeat("b", 30),
		"big.bin": strings.Repeat("0123456789", 1<<20+1),
	}
	for name, content := range files {
		write(t, filepath.Join(w.Path, name), content)
	}
	request := commit.Request{Message: "m", TargetTip: targetOf(r, t).Tip}
	_, err := commit.Create(ctx, w, request)
	var got []string
	for _, f := range wantError[*commit.SuspectError](t, err).Files {
		got = append(got, f.Path)
	}
	want := []string{".env", "ant.txt", "aws.txt", "big.bin", "conf/.env.local", "gh.txt", "id_ed25519", "key.pem"}
	if !slices.Equal(got, want) {
		t.Fatalf("got %q, want %q", got, want)
	}
	equal(t, "branch", value[string](t)(w.Tip(ctx)), targetOf(r, t).Tip)
	request.Allow = want
	value[commit.Commit](t)(commit.Create(ctx, w, request))
}

func TestCommitFindsSecretsTheAgentCommitted(t *testing.T) {
	r := sample(t)
	w := add(t, r, "T")
	write(t, filepath.Join(w.Path, "secret.txt"), "ghp_"+strings.Repeat("a", 36))
	gitIn(t, w.Path, "add", "-A")
	gitIn(t, w.Path, "commit", "-qm", "own")
	gitIn(t, w.Path, "rm", "-q", "secret.txt")
	gitIn(t, w.Path, "commit", "-qm", "hidden")
	_, err := commit.Create(t.Context(), w, commit.Request{Message: "m", TargetTip: targetOf(r, t).Tip})
	equal(t, "path", wantError[*commit.SuspectError](t, err).Files[0].Path, "secret.txt")
}

// Files that the target brings in by a merge are not the task's.
func TestCommitIgnoresSuspectsOfTarget(t *testing.T) {
	r := sample(t)
	w := add(t, r, "T")
	write(t, filepath.Join(w.Path, "a"), "a")
	commitAll(t, w, "a")
	write(t, filepath.Join(r.Root, ".env"), "A=1")
	gitIn(t, r.Root, "add", "-f", ".env")
	gitIn(t, r.Root, "commit", "-qm", "the person's choice")
	value[integrate.Landing](t)(integrate.Merge(t.Context(), w, targetOf(r, t)))
	write(t, filepath.Join(w.Path, "b"), "b")
	commitAll(t, w, "b")
}

func TestCommitHooks(t *testing.T) {
	r := sample(t)
	ctx := t.Context()
	w := add(t, r, "T")
	hooks := filepath.Join(r.GitDir, "hooks")
	record := filepath.Join(t.TempDir(), "record")
	hook(t, filepath.Join(hooks, commit.PreCommit), "echo pre-commit $(git diff --cached --name-only) >>"+record+"\necho formatted >>a\n")
	hook(t, filepath.Join(hooks, commit.PrepareMsg), "echo $2 >>"+record+"\necho prepared >>$1\n")
	hook(t, filepath.Join(hooks, commit.CommitMsg), "echo commit-msg >>"+record+"\nprintf '\\n\\nChange-Id: 1\\n' >>$1\n")
	hook(t, filepath.Join(hooks, commit.PostCommit), "echo post-commit >>"+record+"\nexit 1\n")
	write(t, filepath.Join(w.Path, "a"), "a\n")
	request := commit.Request{Message: "subject", TargetTip: targetOf(r, t).Tip, Hooks: runHook}
	c := value[commit.Commit](t)(commit.Create(ctx, w, request))
	equal(t, "order", read(t, record), "pre-commit a\nmessage\ncommit-msg\npost-commit\n")
	equal(t, "content", gitIn(t, r.Root, "show", c.Oid+":a"), "a\nformatted")
	equal(t, "message", gitIn(t, r.Root, "log", "-1", "--format=%B", c.Oid), "subject\nprepared\n\nChange-Id: 1\n")
	equal(t, "status", gitIn(t, w.Path, "status", "--porcelain"), "")

	hook(t, filepath.Join(hooks, commit.CommitMsg), "echo too short; exit 3\n")
	write(t, filepath.Join(w.Path, "a"), "b\n")
	_, err := commit.Create(ctx, w, request)
	refused := wantError[*commit.HookError](t, err)
	equal(t, "hook", refused.Name, commit.CommitMsg)
	equal(t, "output", refused.Output, "too short\n")
	equal(t, "branch", value[string](t)(w.Tip(ctx)), c.Oid)
}

func TestCommitHookPlaces(t *testing.T) {
	r := sample(t)
	ctx := t.Context()
	w := add(t, r, "T")
	count := 0
	run := func(_ context.Context, h commit.Hook) ([]byte, error) {
		count++
		return nil, errors.New(h.Path)
	}
	try := func(want string) {
		t.Helper()
		count = 0
		write(t, filepath.Join(w.Path, "a"), fmt.Sprint(want, t.Name()))
		_, err := commit.Create(ctx, w, commit.Request{Message: "m", TargetTip: targetOf(r, t).Tip, Hooks: run})
		if want == "" {
			must(t, err)
			equal(t, "runs", count, 0)
			return
		}
		equal(t, "script", wantError[*commit.HookError](t, err).Err.Error(), want)
	}
	hook(t, filepath.Join(w.Path, ".husky", commit.PreCommit), "")
	gitIn(t, r.Root, "config", "core.hooksPath", ".husky")
	try(filepath.Join(w.Path, ".husky", commit.PreCommit))
	must(t, os.Chmod(filepath.Join(w.Path, ".husky", commit.PreCommit), 0o644))
	try("")
	must(t, os.RemoveAll(filepath.Join(w.Path, ".husky")))
	hook(t, filepath.Join(r.Root, ".husky", commit.PreCommit), "")
	try(filepath.Join(r.Root, ".husky", commit.PreCommit))
	hook(t, filepath.Join(r.Root, ".beads/hooks", commit.PreCommit), "")
	gitIn(t, r.Root, "config", "core.hooksPath", filepath.Join(r.Root, ".beads/hooks"))
	write(t, filepath.Join(w.Path, "b"), "b")
	try("")
}

// A candidate contains the branch's tree from before the merge with the target: it shows which part of a
// review is still valid.
func TestIntegrateFrom(t *testing.T) {
	r := sample(t)
	w, _ := ready(t, r, "T")
	before := value[string](t)(content.Tree(t.Context(), w))
	still := value[integrate.Landing](t)(integrate.Merge(t.Context(), w, targetOf(r, t)))
	equal(t, "from, without a merge", still.From, still.Tree)
	write(t, filepath.Join(r.Root, "theirs.txt"), "theirs\n")
	gitIn(t, r.Root, "add", "theirs.txt")
	gitIn(t, r.Root, "commit", "-q", "-m", "theirs")
	merged := value[integrate.Landing](t)(integrate.Merge(t.Context(), w, targetOf(r, t)))
	equal(t, "from", merged.From, before)
	if merged.Tree == before {
		t.Error("the target was not merged")
	}
}
