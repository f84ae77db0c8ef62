package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

// repository is the top directory of this repository.
var repository = filepath.Join("..", "..")

// The .coven directory of this repository is valid, its grimoire passes its tests, and its checks are
// targets of the Makefile.
func TestOwnConfiguration(t *testing.T) {
	scratch := t.TempDir()
	for _, name := range []string{".coven", "Makefile", ".gitignore"} {
		copyTracked(t, scratch, name)
	}
	sealProcess(t)
	output(t, scratch, "git", "init", "-q", "-b", "main")
	output(t, scratch, "git", "add", "-A")
	output(t, scratch, "git", "commit", "-q", "-m", "first")

	if out := output(t, scratch, "coven", "grimoires", "validate"); !strings.Contains(out, ".coven/grimoires/contribute.yaml: fine") || !strings.Contains(out, " 0 errors, 0 warnings") {
		t.Errorf("coven grimoires validate prints\n%s", out)
	}
	if out := output(t, scratch, "coven", "grimoires", "test", "contribute", "--strict"); !strings.Contains(out, " 0 failed") {
		t.Errorf("coven grimoires test prints\n%s", out)
	}
	if out := output(t, scratch, "coven", "run", "-p", "a task", "--dry-run"); !strings.Contains(out, "(contribute: ") {
		t.Errorf("a task does not get the grimoire contribute:\n%s", out)
	}
	checks(t, scratch)
	ignores(t, scratch)
}

// checks fails unless each configured check is a target of the Makefile.
func checks(t *testing.T, dir string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, ".coven", "config.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var cfg struct {
		Checks []string `yaml:"checks"`
	}
	if err := yaml.Unmarshal(text, &cfg); err != nil {
		t.Fatal(err)
	}
	makefile, err := os.ReadFile(filepath.Join(dir, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	if len(cfg.Checks) == 0 {
		t.Error("the configuration has no checks")
	}
	for _, check := range cfg.Checks {
		target, isMake := strings.CutPrefix(check, "make ")
		if !isMake || !strings.Contains(string(makefile), "\n"+target+":") {
			t.Errorf("the check %q is not a target of the Makefile", check)
		}
	}
}

// ignores fails unless git ignores exactly the files that coven writes below .coven.
func ignores(t *testing.T, dir string) {
	t.Helper()
	for _, file := range []string{"worktrees/t-1/main.go", "run/inbox/1.json", "sessions/s-1/events.jsonl", "secrets.yaml", "prompts/new.md"} {
		path := filepath.Join(dir, ".coven", filepath.FromSlash(file))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got := output(t, dir, "git", "status", "--porcelain", "--untracked-files=all"); got != "?? .coven/prompts/new.md\n" {
		t.Errorf("git status prints %q", got)
	}
}

// copyTracked copies the files below path that git does not ignore from this repository to dir.
func copyTracked(t *testing.T, dir, path string) {
	t.Helper()
	files := strings.Split(strings.TrimSuffix(output(t, repository, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", path), "\x00"), "\x00")
	if len(files) == 1 && files[0] == "" {
		t.Fatalf("git knows no file in %s", path)
	}
	for _, file := range files {
		from := filepath.Join(repository, filepath.FromSlash(file))
		info, err := os.Lstat(from)
		if err != nil || !info.Mode().IsRegular() {
			continue // deleted and not yet committed, or a symbolic link
		}
		text, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(dir, filepath.FromSlash(file))
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, text, info.Mode().Perm()); err != nil {
			t.Fatal(err)
		}
	}
}

// sealProcess gives the programs of this test a home without settings, and git an author.
func sealProcess(t *testing.T) {
	t.Helper()
	home := t.TempDir()
	for key, value := range map[string]string{
		"HOME": home, "XDG_CONFIG_HOME": filepath.Join(home, ".config"), "XDG_CACHE_HOME": filepath.Join(home, ".cache"),
		"GIT_CONFIG_GLOBAL": os.DevNull, "GIT_CONFIG_NOSYSTEM": "1",
		"GIT_AUTHOR_NAME": "Tester", "GIT_AUTHOR_EMAIL": "tester@example.invalid",
		"GIT_COMMITTER_NAME": "Tester", "GIT_COMMITTER_EMAIL": "tester@example.invalid",
	} {
		t.Setenv(key, value)
	}
}

// output runs a command in dir that must succeed, and returns its standard output.
func output(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(context.Background(), name, args...)
	cmd.Dir = dir
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s%s", name, strings.Join(args, " "), err, out, stderr.String())
	}
	return string(out)
}
