// Package examples_test builds the example plugins as their authors would, and
// holds them to the contract.
package examples_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coven-run/coven/plugins/arbiter"
	"github.com/coven-run/coven/plugins/pluginerr"
	"github.com/coven-run/coven/plugins/plugintest"
	"github.com/coven-run/coven/plugins/provider"
	"github.com/coven-run/coven/plugins/reviewer"
)

// built builds an example, each a module of its own, and returns its file. Nothing
// is fetched.
func built(t *testing.T, name string) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "coven-"+filepath.Base(name))
	cmd := exec.Command("go", "build", "-o", binary, ".")
	switch name {
	case "reviewer-python":
		python(t)
		cmd = exec.Command("./build", filepath.Dir(binary))
	case "reviewer-node":
		node(t)
		cmd = exec.Command("./build", filepath.Dir(binary))
	}
	cmd.Dir = name
	cmd.Env = append(os.Environ(), "GOPROXY=off", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", name, err, out)
	}
	return binary
}

// python skips a test where gRPC for Python is not installed, unless it has to be.
func python(t *testing.T) {
	t.Helper()
	interpreter := os.Getenv("PYTHON")
	if interpreter == "" {
		interpreter = "/usr/bin/python3"
	}
	out, err := exec.Command(interpreter, "-c", "import grpc, grpc_tools, cryptography").CombinedOutput()
	if err == nil {
		return
	}
	if os.Getenv("COVEN_REQUIRE_PYTHON") != "" {
		t.Fatalf("gRPC for Python is required: %v\n%s", err, out)
	}
	t.Skip("gRPC for Python is not here: apt-get install python3-grpcio python3-grpc-tools python3-cryptography")
}

// node skips a test where the packages of the example in Node.js are not installed, unless
// they have to be.
func node(t *testing.T) {
	t.Helper()
	out, err := exec.Command("node", "--version").CombinedOutput()
	if err == nil {
		out, err = exec.Command("cmp", "reviewer-node/package-lock.json", "reviewer-node/node_modules/.installed").CombinedOutput()
	}
	if err == nil {
		return
	}
	if os.Getenv("COVEN_REQUIRE_NODE") != "" {
		t.Fatalf("the packages of reviewer-node are required: %v\n%s", err, out)
	}
	t.Skip("the packages of reviewer-node are not here: examples/plugins/reviewer-node/build")
}

// Every example is here.
func examples(t *testing.T) []string {
	t.Helper()
	dirs, err := filepath.Glob("*-*")
	if err != nil || len(dirs) < 5 {
		t.Fatalf("examples: %q %v", dirs, err)
	}
	return dirs
}

func TestConformance(t *testing.T) {
	for _, name := range examples(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := plugintest.Options{Ready: 2 * time.Minute, Answer: 2 * time.Minute, End: time.Minute}
			if name == "provider-runbook" {
				o.Transcript = []byte("started\tc1\ncall\t1\techo a\\nb\nresult\t1\t0\ta\\nb\ndone\tok\tI have run it.\n")
			}
			if passed := plugintest.Test(t, built(t, name), "", o); passed < 15 {
				t.Errorf("%d cases passed", passed)
			}
		})
	}
}

// reviewed starts a reviewer and has it review what a worktree changes.
func reviewed(t *testing.T, binary string, repo *plugintest.Repo, host *plugintest.Services, options map[string]string) reviewer.Review {
	t.Helper()
	r, err := plugintest.Start(t, binary, plugintest.Options{}).Reviewer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	change := repo.Change(t)
	change.Options = options
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	review, err := r.Review(ctx, change, host)
	if err != nil {
		t.Fatal(err)
	}
	return review
}

func places(findings []reviewer.Finding) []string {
	var all []string
	for _, f := range findings {
		all = append(all, string(f.Severity)+" "+f.Where()+" "+f.Message)
	}
	return all
}

func TestGovet(t *testing.T) {
	t.Parallel()
	binary := built(t, "reviewer-govet")
	repo := plugintest.NewRepo(t, t.TempDir(), map[string]string{
		"go.mod": "module example.test/app\n\ngo 1.24\n", "old.go": "package app\n\nimport \"fmt\"\n\nfunc old() { fmt.Printf(\"%d\", \"x\") }\n",
	})
	repo.Write(t, "new.go", "package app\n\nimport \"fmt\"\n\nfunc fresh() { fmt.Printf(\"%d\\n\", \"x\") }\n")
	host := &plugintest.Services{}
	review := reviewed(t, binary, repo, host, nil)
	want := []string{`error new.go:5 fmt.Printf format %d has arg "x" of wrong type string`}
	if got := places(review.Findings); review.Verdict != reviewer.Fail || !slices.Equal(got, want) {
		t.Errorf("%s %q", review.Verdict, got)
	}
	if logs := host.Logs(); len(logs) != 1 || !strings.Contains(logs[0], "old.go:5") {
		t.Errorf("logged: %q", logs)
	}
	review = reviewed(t, binary, repo, host, map[string]string{"severity": "warning", "scope": "all"})
	if got := places(review.Findings); review.Verdict != reviewer.Pass || len(got) != 2 {
		t.Errorf("%s %q", review.Verdict, got)
	}
	repo.Write(t, "new.go", "package app\n\nfunc fresh() int { return \"x\" }\n")
	review = reviewed(t, binary, repo, host, nil)
	if got := places(review.Findings); review.Verdict != reviewer.Fail || len(got) != 1 || !strings.HasPrefix(got[0], "error new.go:3 ") {
		t.Errorf("%s %q", review.Verdict, got)
	}
}

func TestMajority(t *testing.T) {
	t.Parallel()
	a, err := plugintest.Start(t, built(t, "arbiter-majority"), plugintest.Options{}).Arbiter(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	opinions := []arbiter.Opinion{{Reviewer: "a", Verdict: reviewer.Fail}, {Reviewer: "b", Verdict: reviewer.Pass}, {Reviewer: "c", Verdict: reviewer.Fail}, {Reviewer: "d", Verdict: reviewer.Pass}}
	for _, tc := range []struct {
		opinions []arbiter.Opinion
		share    string
		want     bool
	}{{opinions[:1], "", true}, {opinions[1:2], "", false}, {opinions[:2], "", false}, {opinions[:3], "", true}, {opinions, "49", true}, {opinions[:3], "67", false}} {
		q := arbiter.Question{Opinions: tc.opinions, Round: 1, MaxRounds: 3}
		if tc.share != "" {
			q.Options = map[string]string{"share": tc.share}
		}
		d, err := a.Decide(t.Context(), q, &plugintest.Services{})
		if err != nil || d.Continue != tc.want || !strings.HasSuffix(d.Reason, "reviewers say fail") {
			t.Errorf("%d opinions, share %q: %+v %v", len(tc.opinions), tc.share, d, err)
		}
	}
}

// The runbook's command line does the work of a task, and what it prints becomes
// events.
func TestRunbook(t *testing.T) {
	t.Parallel()
	p, err := plugintest.Start(t, built(t, "provider-runbook"), plugintest.Options{}).Provider(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		prompt string
		result provider.Result
		output string
	}{
		{"Please do this.\n\n```sh\nprintf '%s\\n' 'a\\b\tc' > made\ncat made made\n```\n", provider.Result{OK: true, Text: "I have run the commands of the task.", Turns: 1}, "a\\b c\na\\b c"},
		{"```sh\necho almost\nfalse\necho never\n```\n", provider.Result{Error: "the commands ended with exit code 1", Turns: 1}, "almost"},
		{"Make it nice.\n", provider.Result{Error: "the task has no block of shell commands: there is nothing to run", Turns: 1}, ""},
	} {
		files, work := t.TempDir(), t.TempDir()
		cmd, err := p.Command(t.Context(), provider.Request{Conversation: "c1", Prompt: tc.prompt, FilesDir: files})
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range cmd.Files {
			if err := os.WriteFile(filepath.Join(files, f.Name), f.Content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		run := exec.Command(cmd.Argv[0], cmd.Argv[1:]...)
		run.Dir = work
		out, err := run.Output()
		if (err == nil) != tc.result.OK {
			t.Errorf("%q: %v", tc.prompt, err)
		}
		events, err := p.Parse(t.Context(), out)
		if err != nil || len(events) < 2 || !reflect.DeepEqual(events[0], provider.Started{Conversation: "c1", Model: "none", Tools: []string{"sh"}}) ||
			!reflect.DeepEqual(events[len(events)-1], tc.result) {
			t.Errorf("%q: %+v %v", tc.prompt, events, err)
		}
		for _, e := range events {
			if r, ok := e.(provider.ToolResult); ok && (r.Text != tc.output || r.IsError == tc.result.OK) {
				t.Errorf("%q: the output %q", tc.prompt, r.Text)
			}
		}
	}
}

// The reviewer in Python reviews, reads a file through coven and writes to the log.
func TestPython(t *testing.T) {
	t.Parallel()
	binary := built(t, "reviewer-python")
	repo := plugintest.NewRepo(t, t.TempDir(), map[string]string{"a.txt": "one \ntwo\n"})
	repo.Write(t, "a.txt", "one \ntwo\nthree \n")
	repo.Write(t, "docs/b.md", "x  \n# TODO: more\n")
	host := &plugintest.Services{Files: map[string][]byte{".editorconfig": []byte("root = true\n\n[*.md]\ntrim_trailing_whitespace = false\n")}}
	review := reviewed(t, binary, repo, host, nil)
	want := []string{"error a.txt:3 blanks at the end of the line", "warning docs/b.md:2 left to do: # TODO: more"}
	if got := places(review.Findings); review.Verdict != reviewer.Fail || !slices.Equal(got, want) {
		t.Errorf("%s %q", review.Verdict, got)
	}
	if reads, logs := host.Reads(), host.Logs(); !slices.Equal(reads, []string{".editorconfig"}) || !slices.Equal(logs, []string{"2 files, 2 findings"}) {
		t.Errorf("read %q, logged %q", reads, logs)
	}
	review = reviewed(t, binary, repo, &plugintest.Services{}, map[string]string{"words": "three", "severity": "info"})
	want = []string{"error a.txt:3 blanks at the end of the line", "error docs/b.md:1 blanks at the end of the line", "info a.txt:3 left to do: three"}
	if got := places(review.Findings); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// The reviewer in Node.js reviews, reads a file through coven and writes to the log.
func TestNode(t *testing.T) {
	t.Parallel()
	binary := built(t, "reviewer-node")
	repo := plugintest.NewRepo(t, t.TempDir(), map[string]string{"a.js": "debugger;\nlet a;\n", "gone.json": "{"})
	repo.Write(t, "a.js", "debugger;\nlet a;\nconsole.log(a);\n  debugger;\n")
	repo.Write(t, "b.json", `{"a": 1,}`)
	repo.Write(t, "c.json", `{"a": 1}`)
	files := map[string][]byte{"b.json": []byte(`{"a": 1,}`), "c.json": []byte(`{"a": 1}`)}
	host := &plugintest.Services{Files: files}
	review := reviewed(t, binary, repo, host, nil)
	want := []string{"error b.json the file is not JSON", "error a.js:4 a debugger statement is left", "warning a.js:3 console.log is left"}
	if got := places(review.Findings); review.Verdict != reviewer.Fail || len(got) != 3 || !strings.HasPrefix(got[0], want[0]) || !slices.Equal(got[1:], want[1:]) {
		t.Errorf("%s %q", review.Verdict, got)
	}
	if reads, logs := host.Reads(), host.Logs(); !slices.Equal(reads, []string{"b.json", "c.json"}) || !slices.Equal(logs, []string{"3 files, 3 findings"}) {
		t.Errorf("read %q, logged %q", reads, logs)
	}
	review = reviewed(t, binary, repo, &plugintest.Services{}, map[string]string{"severity": "info"}) // no file can be read
	if got := places(review.Findings); !slices.Equal(got, []string{"error a.js:4 a debugger statement is left", "info a.js:3 console.log is left"}) {
		t.Errorf("%q", got)
	}
	r, err := plugintest.Start(t, binary, plugintest.Options{}).Reviewer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	change := repo.Change(t)
	change.Options = map[string]string{"colour": "red"}
	if _, err := r.Review(t.Context(), change, host); !errors.Is(err, pluginerr.ErrInvalid) || !strings.Contains(err.Error(), "no option colour") {
		t.Errorf("an unknown option: %v", err)
	}
}
