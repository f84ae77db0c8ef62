package plugintest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/coven-run/coven/plugins/reviewer"
)

// Repo is a git repository for tests of a reviewer. It has a base commit, and its worktree holds the change
// to review.
type Repo struct {
	Dir  string // of the worktree
	base string
	last int // number of the last commit
}

// NewRepo creates a repository in an empty directory and commits files, which maps slash-separated paths to
// contents.
func NewRepo(t T, dir string, files map[string]string) *Repo {
	t.Helper()
	r, err := newRepo(dir)
	if err == nil {
		err = r.commit(files)
	}
	if err != nil {
		t.Fatalf("%v", err)
	}
	return r
}

// Write writes a file of the worktree.
func (r *Repo) Write(t T, file, content string) {
	t.Helper()
	if err := r.write(map[string]string{file: content}); err != nil {
		t.Fatalf("%v", err)
	}
}

// Change returns the change in the worktree as coven passes it to a reviewer, without the task and the
// options.
func (r *Repo) Change(t T) reviewer.Change {
	t.Helper()
	c, err := r.change()
	if err != nil {
		t.Fatalf("%v", err)
	}
	return c
}

// State returns a hash of the mode and content of each file in the worktree, without git's own files. A
// reviewer must not change it.
func (r *Repo) State() (map[string]string, error) {
	state := map[string]string{}
	err := filepath.WalkDir(r.Dir, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(r.Dir, file)
		switch {
		case err != nil:
			return err
		case rel == ".git":
			return filepath.SkipDir
		case d.IsDir():
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		content := []byte(info.Mode().String())
		if info.Mode().IsRegular() {
			text, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			content = append(content, text...)
		}
		state[filepath.ToSlash(rel)] = fmt.Sprintf("%x", sha256.Sum256(content))
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the worktree: %w", err)
	}
	return state, nil
}

func newRepo(dir string) (*Repo, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("make a repository: %w", err)
	}
	r := &Repo{Dir: dir}
	if _, err := r.git("init", "-q", "-b", "main"); err != nil {
		return nil, err
	}
	return r, nil
}

// git runs git in the worktree, without the user's settings.
func (r *Repo) git(args ...string) (string, error) {
	cmd := exec.CommandContext(context.Background(), "git", args...)
	cmd.Dir = r.Dir
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + r.Dir, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + os.DevNull, "LC_ALL=C",
		"GIT_AUTHOR_NAME=plugintest", "GIT_AUTHOR_EMAIL=plugintest@localhost", "GIT_COMMITTER_NAME=plugintest", "GIT_COMMITTER_EMAIL=plugintest@localhost",
	}
	var out, wrong bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &wrong
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("git %s: %w: %s", args[0], err, strings.TrimSpace(wrong.String()))
	}
	return out.String(), nil
}

func (r *Repo) write(files map[string]string) error {
	for file, content := range files {
		path := filepath.Join(r.Dir, filepath.FromSlash(file))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("write %s: %w", file, err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			return fmt.Errorf("write %s: %w", file, err)
		}
	}
	return nil
}

// commit replaces the worktree's files and commits them.
func (r *Repo) commit(files map[string]string) error {
	entries, err := os.ReadDir(r.Dir)
	if err != nil {
		return fmt.Errorf("empty the worktree: %w", err)
	}
	for _, e := range entries {
		if e.Name() == ".git" {
			continue
		}
		if err := os.RemoveAll(filepath.Join(r.Dir, e.Name())); err != nil {
			return fmt.Errorf("empty the worktree: %w", err)
		}
	}
	if err := r.write(files); err != nil {
		return err
	}
	r.last++
	for _, args := range [][]string{{"add", "-A"}, {"commit", "-q", "--no-verify", "--allow-empty", "-m", "state " + strconv.Itoa(r.last)}} {
		if _, err := r.git(args...); err != nil {
			return err
		}
	}
	base, err := r.git("rev-parse", "HEAD")
	r.base = strings.TrimSpace(base)
	return err
}

func (r *Repo) change() (reviewer.Change, error) {
	if _, err := r.git("add", "-A"); err != nil {
		return reviewer.Change{}, err
	}
	c := reviewer.Change{Dir: r.Dir, Base: r.base, Round: 1}
	var raw, numbers string
	for out, args := range map[*string][]string{
		&c.Tree:  {"write-tree"},
		&c.Diff:  {"-c", "core.quotePath=false", "diff", "--cached", "-M", "HEAD"},
		&raw:     {"diff", "--cached", "-M", "--name-status", "-z", "HEAD"},
		&numbers: {"diff", "--cached", "-M", "--numstat", "-z", "HEAD"},
	} {
		text, err := r.git(args...)
		if err != nil {
			return reviewer.Change{}, err
		}
		*out = text
	}
	c.Tree = strings.TrimSpace(c.Tree)
	c.Files = filesOf(raw, numbers)
	_, err := r.git("reset", "-q") // nothing is staged, as in coven's worktrees
	return c, err
}

// filesOf parses git's NUL-separated --name-status and --numstat output.
func filesOf(raw, numbers string) []reviewer.File {
	var files []reviewer.File
	words := strings.Split(raw, "\x00")
	for len(words) >= 2 && words[0] != "" {
		f := reviewer.File{Status: words[0][:1], Path: words[1]}
		words = words[2:]
		if f.Status == "R" {
			f.From, f.Path, words = f.Path, words[0], words[1:]
		}
		files = append(files, f)
	}
	words = strings.Split(numbers, "\x00")
	for len(words) > 0 && words[0] != "" {
		counts := strings.SplitN(words[0], "\t", 3)
		words = words[1:]
		path := counts[2]
		if path == "" { // renamed: the old and the new path follow
			path, words = words[1], words[2:]
		}
		i := slices.IndexFunc(files, func(f reviewer.File) bool { return f.Path == path })
		if i < 0 {
			continue
		}
		files[i].Binary = counts[0] == "-"
		files[i].Added, _ = strconv.Atoi(counts[0])
		files[i].Deleted, _ = strconv.Atoi(counts[1])
	}
	return files
}
