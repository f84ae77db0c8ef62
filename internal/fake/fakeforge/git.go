package fakeforge

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// bare is a bare repository.
type bare struct {
	dir   string
	trees map[[2]string]string // results of merged
}

// run runs git. It returns the output without the last line end.
func (b bare) run(stdin string, args ...string) (string, error) {
	cmd := exec.CommandContext(context.Background(), "git", append([]string{"--git-dir", b.dir}, args...)...)
	cmd.Stdin = strings.NewReader(stdin)
	cmd.Env = append(os.Environ(), "GIT_AUTHOR_NAME=Forge", "GIT_AUTHOR_EMAIL=forge@example.com", "GIT_COMMITTER_NAME=Forge", "GIT_COMMITTER_EMAIL=forge@example.com", "GIT_CONFIG_GLOBAL=/dev/null")
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return strings.TrimSpace(string(out)), fmt.Errorf("git %s: %w: %s", args[0], err, strings.TrimSpace(string(exit.Stderr)))
	}
	return strings.TrimSpace(string(out)), err
}

// commit returns the commit of a branch.
func (b bare) commit(branch string) (string, error) {
	name := "refs/heads/" + branch
	if text, err := os.ReadFile(filepath.Join(b.dir, name)); err == nil { // a hundred pull requests would take a hundred processes
		return strings.TrimSpace(string(text)), nil
	}
	packed, _ := os.ReadFile(filepath.Join(b.dir, "packed-refs"))
	for line := range strings.Lines(string(packed)) {
		if commit, found := strings.CutSuffix(strings.TrimSpace(line), " "+name); found {
			return commit, nil
		}
	}
	return "", fmt.Errorf("there is no branch %s", branch)
}

func (b bare) delete(branch string) error {
	_, err := b.run("", "update-ref", "-d", "refs/heads/"+branch)
	return err
}

// merged returns the tree of a merge. It is empty if there are conflicts.
func (b bare) merged(base, head string) string {
	tree, known := b.trees[[2]string{base, head}]
	if !known {
		out, err := b.run("", "merge-tree", "--write-tree", base, head)
		if err == nil {
			tree, _, _ = strings.Cut(out, "\n")
		}
		b.trees[[2]string{base, head}] = tree
	}
	return tree
}

// contains reports whether commit is an ancestor of head.
func (b bare) contains(head, commit string) bool {
	_, err := b.run("", "merge-base", "--is-ancestor", commit, head)
	return err == nil
}

// errConflict means that a pull request conflicts with its base.
var errConflict = errors.New("conflict")

// merge merges a commit into a branch and returns the new commit of the branch.
func (b bare) merge(base, head, method, message string) (string, error) {
	tip, err := b.commit(base)
	if err != nil {
		return "", err
	}
	if method == "rebase" {
		if !b.contains(head, tip) {
			return "", fmt.Errorf("the fake rebases only what is up to date: %w", errConflict)
		}
		_, err = b.run("", "update-ref", "refs/heads/"+base, head, tip)
		return head, err
	}
	tree := b.merged(tip, head)
	if tree == "" {
		return "", errConflict
	}
	args := []string{"commit-tree", tree, "-p", tip}
	if method != "squash" {
		args = append(args, "-p", head)
	}
	commit, err := b.run(message+"\n", args...)
	if err != nil {
		return "", err
	}
	_, err = b.run("", "update-ref", "refs/heads/"+base, commit, tip)
	return commit, err
}

// push adds a commit with a file to a branch. force replaces the last commit of the branch.
func (b bare) push(branch, file, content string, force bool) error {
	tip, err := b.commit(branch)
	if err != nil {
		return err
	}
	blob, err := b.run(content, "hash-object", "-w", "--stdin")
	if err != nil {
		return err
	}
	index, err := os.CreateTemp("", "index")
	if err != nil {
		return err
	}
	defer os.Remove(index.Name()) //nolint:errcheck // a temporary file
	_ = index.Close()             // git writes it
	_ = os.Remove(index.Name())   // an empty file is no index
	script := fmt.Sprintf("export GIT_INDEX_FILE='%s'; git --git-dir '%s' read-tree %s && git --git-dir '%s' update-index --add --cacheinfo 100644,%s,'%s' && git --git-dir '%s' write-tree",
		index.Name(), b.dir, tip, b.dir, blob, file, b.dir)
	out, err := exec.CommandContext(context.Background(), "sh", "-c", script).Output()
	if err != nil {
		return fmt.Errorf("write a tree: %w", err)
	}
	parent := tip
	if force {
		if parent, err = b.run("", "rev-parse", tip+"^"); err != nil {
			return err
		}
	}
	commit, err := b.run("Change "+file+"\n", "commit-tree", strings.TrimSpace(string(out)), "-p", parent)
	if err != nil {
		return err
	}
	_, err = b.run("", "update-ref", "refs/heads/"+branch, commit, tip)
	return err
}
