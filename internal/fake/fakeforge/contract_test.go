package fakeforge_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coven-run/coven/internal/fake/fakeforge"
	"github.com/coven-run/coven/plugins/builtin/github"
	"github.com/coven-run/coven/plugins/forge"
)

func run(t *testing.T, env []string, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Env = append(append(os.Environ(), "HOME="+t.TempDir(), "GIT_AUTHOR_NAME=A", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=A", "GIT_COMMITTER_EMAIL=a@example.com"), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", name, args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// The real gh reads pull requests of the plugin github from the fake. gh speaks http only to github.localhost, which it reaches through the
// fake as its proxy.
func TestGH(t *testing.T) {
	if _, err := exec.LookPath("gh"); err != nil {
		t.Skip("gh is not here: apt-get install gh")
	}
	work, bare := filepath.Join(t.TempDir(), "work"), filepath.Join(t.TempDir(), "bare.git")
	run(t, nil, "git", "init", "-q", "-b", "main", work)
	run(t, nil, "git", "-C", work, "commit", "-q", "--allow-empty", "-m", "begin")
	run(t, nil, "git", "-C", work, "checkout", "-q", "-b", "coven/x")
	run(t, nil, "git", "-C", work, "commit", "-q", "--allow-empty", "-m", "work")
	run(t, nil, "git", "clone", "-q", "--bare", work, bare)
	server, err := fakeforge.New(bare, "acme/app")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	plugin := github.Forge{Getenv: func(string) string { return "t" }}
	where := forge.Repository{Host: server.Host, API: server.API, Path: "acme/app"}
	pull, err := plugin.Open(t.Context(), forge.Request{Repository: where, Head: "coven/x", Base: "main", Title: "Fix it", Text: "Done.", Draft: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{
		server.Comment(1, "ann", "", "Why?"), server.Review(1, "bob", "APPROVED", "Good."), server.Check(1, "test", "passed", ""), server.Check(1, "status:ext", "pending", ""),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	gh := func(args ...string) string {
		t.Helper()
		return run(t, []string{
			"HTTP_PROXY=http://" + server.Host, "NO_PROXY=", "GH_HOST=github.localhost", "GH_TOKEN=t", "GH_REPO=github.localhost/acme/app", "GH_NO_UPDATE_NOTIFIER=1", "GH_PROMPT_DISABLED=1",
		}, "gh", args...)
	}
	var got struct {
		Number                                                                                          int
		Title, Body, State, HeadRefName, HeadRefOid, BaseRefName, URL, MergeStateStatus, ReviewDecision string
		IsDraft                                                                                         bool
		Comments, LatestReviews                                                                         []struct {
			Author struct{ Login string }
			Body   string
		}
		StatusCheckRollup []struct{ Name, Context, Status, Conclusion, State string }
	}
	text := gh("pr", "view", "1", "--json", "number,title,body,state,headRefName,headRefOid,baseRefName,url,mergeStateStatus,reviewDecision,isDraft,comments,latestReviews,statusCheckRollup")
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if got.Number != 1 || got.Title != "Fix it" || got.Body != "Done." || got.State != "OPEN" || !got.IsDraft || got.HeadRefOid != pull.Head || got.HeadRefName != "coven/x" ||
		got.BaseRefName != "main" || got.URL != pull.URL || got.MergeStateStatus != "DRAFT" || len(got.Comments) != 1 || got.Comments[0].Author.Login != "ann" || got.Comments[0].Body != "Why?" ||
		len(got.LatestReviews) != 1 || got.LatestReviews[0].Author.Login != "bob" || len(got.StatusCheckRollup) != 2 {
		t.Errorf("gh pr view: %s", text)
	}
	if text := gh("pr", "view", "coven/x", "--json", "number"); text != `{"number":1}` {
		t.Errorf("gh pr view coven/x: %s", text)
	}
	if text := gh("api", "repos/acme/app/pulls", "--jq", ".[0].title"); text != "Fix it" {
		t.Errorf("gh api: %s", text)
	}
	if err := server.Ready(1); err != nil {
		t.Fatal(err)
	}
	commit, err := plugin.Merge(t.Context(), where, forge.Merge{Number: 1, Head: pull.Head})
	if err != nil {
		t.Fatal(err)
	}
	if text := gh("pr", "view", "1", "--json", "state,mergeCommit,mergedBy", "--jq", ".state+\" \"+.mergeCommit.oid+\" \"+.mergedBy.login"); text != "MERGED "+commit+" owner" {
		t.Errorf("gh pr view: %s, want %s", text, commit)
	}
}
