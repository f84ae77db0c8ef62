package task

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// place creates files in a new directory and returns the directory.
func place(t *testing.T, files map[string]string) string {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-C", dir}, args...)...)
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=T", "GIT_AUTHOR_EMAIL=t@example.com", "GIT_COMMITTER_NAME=T", "GIT_COMMITTER_EMAIL=t@example.com",
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return string(out)
}

func find(t *testing.T, dir, main string, env ...string) string {
	t.Helper()
	path, err := fileOf(dir, main, environment(env...))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// fileOf returns the path of the tasks file if neither bd nor br is on PATH.
func fileOf(dir, main string, getenv func(string) string) (string, error) {
	missing := func(string) (string, error) { return "", exec.ErrNotFound }
	tracker, err := Open(Options{Dir: dir, MainCheckout: main, Getenv: getenv, LookPath: missing})
	if err != nil {
		return "", err
	}
	return tracker.(*File).path, nil
}

func environment(env ...string) func(string) string {
	return func(name string) string {
		for _, one := range env {
			if value, ok := strings.CutPrefix(one, name+"="); ok {
				return value
			}
		}
		return ""
	}
}

func TestFind(t *testing.T) {
	root := place(t, map[string]string{
		".beads/issues.jsonl":          "", // above the repository: ignored
		"main/.beads/issues.jsonl":     "",
		"main/sub/.beads/issues.jsonl": "",
		"main/sub/deep/f":              "",
		"main/other/f":                 "",
		"bare/f":                       "",
		"old/.beads/beads.jsonl":       "",
		"named/.beads/metadata.json":   `{"database":"beads.db","jsonl_export":"mine.jsonl"}`,
		"shared/.beads/issues.jsonl":   "",
	})
	for _, repo := range []string{"main", "bare", "old", "named"} {
		git(t, filepath.Join(root, repo), "init", "-q")
	}
	at := func(name string) string { return filepath.Join(root, name) }
	for name, c := range map[string]struct{ dir, main, env, want string }{
		"top":             {"main", "main", "", "main/.beads/issues.jsonl"},
		"below":           {"main/other", "main", "", "main/.beads/issues.jsonl"},
		"nearest":         {"main/sub/deep", "main", "", "main/sub/.beads/issues.jsonl"},
		"nothing there":   {"bare", "bare", "", "bare/.beads/issues.jsonl"},
		"outside":         {"shared", "main", "", "main/.beads/issues.jsonl"},
		"old name":        {"old", "old", "", "old/.beads/beads.jsonl"},
		"named in json":   {"named", "named", "", "named/.beads/mine.jsonl"},
		"environment":     {"main", "main", "BEADS_DIR=" + at("shared/.beads"), "shared/.beads/issues.jsonl"},
		"relative":        {"main", "main", "BEADS_DIR=../shared/.beads", "shared/.beads/issues.jsonl"},
		"not there (env)": {"main", "main", "BEADS_DIR=" + at("none/.beads"), "none/.beads/issues.jsonl"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := find(t, at(c.dir), at(c.main), c.env); got != at(c.want) {
				t.Errorf("got %s, want %s", got, at(c.want))
			}
		})
	}
}

func TestFindFromAWorktree(t *testing.T) {
	root := place(t, map[string]string{
		"main/.beads/issues.jsonl":     `{"id":"a"}`,
		"main/sub/.beads/issues.jsonl": `{"id":"b"}`,
	})
	main := filepath.Join(root, "main")
	git(t, main, "init", "-q")
	git(t, main, "add", ".")
	git(t, main, "commit", "-qm", "x")
	for _, tree := range []string{filepath.Join(root, "beside"), filepath.Join(main, ".coven", "worktrees", "x")} {
		git(t, main, "worktree", "add", "-q", "--detach", tree)
		if got := find(t, tree, main); got != filepath.Join(main, directory, defaultFile) {
			t.Errorf("top of %s: %s", tree, got)
		}
		if got := find(t, filepath.Join(tree, "sub"), main); got != filepath.Join(main, "sub", directory, defaultFile) {
			t.Errorf("below %s: %s", tree, got)
		}
	}
}

func TestFindRefuses(t *testing.T) {
	backend, redirect := (*BackendError)(nil), (*RedirectError)(nil)
	isBackend := func(err error) bool { return errors.As(err, &backend) && strings.Contains(err.Error(), "bd export") }
	for name, c := range map[string]struct {
		files map[string]string
		is    func(error) bool
	}{
		"dolt":              {map[string]string{"metadata.json": `{"database":"dolt","backend":"dolt"}`, defaultFile: ""}, isBackend},
		"dolt by database":  {map[string]string{"metadata.json": `{"database":"dolt"}`}, isBackend},
		"dolt by directory": {map[string]string{"embeddeddolt/x/f": ""}, isBackend},
		"something new":     {map[string]string{"metadata.json": `{"backend":"postgres"}`}, isBackend},
		"broken metadata":   {map[string]string{"metadata.json": `{`}, func(err error) bool { return err != nil && strings.Contains(err.Error(), "metadata.json") }},
		"a path for a name": {map[string]string{"metadata.json": `{"jsonl_export":"../x.jsonl"}`}, func(err error) bool { return err != nil && strings.Contains(err.Error(), "jsonl_export") }},
		"redirect":          {map[string]string{"redirect": "../../main/.beads\n"}, func(err error) bool { return errors.As(err, &redirect) && strings.Contains(err.Error(), "BEADS_DIR") }},
	} {
		t.Run(name, func(t *testing.T) {
			dir := place(t, c.files)
			_, err := fileOf(dir, dir, environment("BEADS_DIR="+dir))
			if !c.is(err) {
				t.Errorf("got %v", err)
			}
		})
	}
	if _, err := fileOf(filepath.Join(t.TempDir(), "gone"), t.TempDir(), environment()); err == nil {
		t.Error("found tasks from a directory that does not exist")
	}
}

func TestNoLockFileInTheWorkingTree(t *testing.T) {
	root := place(t, map[string]string{"f": ""})
	git(t, root, "init", "-q")
	f := OpenFile(find(t, root, root), filepath.Join(root, ".git", "coven", "locks"))
	if _, err := f.Add(t.Context(), New{Title: "x"}); err != nil {
		t.Fatal(err)
	}
	if got := git(t, root, "status", "--porcelain", "-uall"); got != "?? .beads/issues.jsonl\n?? f\n" {
		t.Errorf("git status:\n%s", got)
	}
}
