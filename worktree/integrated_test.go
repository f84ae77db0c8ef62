package worktree

import (
	"bytes"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coven-run/coven/worktree/integrate"
	"github.com/coven-run/coven/worktree/internal/content"
	"github.com/coven-run/coven/worktree/internal/repo"
)

// After any merge into the worktree, and with any changes in it, coven knows the tree of its index, so that
// the next operation need not read any file again.
func TestIntegratedIndexIsKnown(t *testing.T) {
	target := map[string]func(r *repo.Repo){
		"another file":  func(r *repo.Repo) { write(t, filepath.Join(r.Root, "other.txt"), "other\n") },
		"the same file": func(r *repo.Repo) { write(t, filepath.Join(r.Root, "file1.txt"), "zero\none\ntwo\nthree 1\n") },
		"a removal":     func(r *repo.Repo) { must(t, os.RemoveAll(filepath.Join(r.Root, "dir"))) },
		"a rename": func(r *repo.Repo) {
			must(t, os.Rename(filepath.Join(r.Root, "file2.txt"), filepath.Join(r.Root, "renamed.txt")))
		},
		"reserved files": func(r *repo.Repo) { write(t, filepath.Join(r.Root, ".beads", "issues.jsonl"), "{}\n") },
		"ignore rules":   func(r *repo.Repo) { write(t, filepath.Join(r.Root, ".gitignore"), "*.log\nbuild/\nfile3.txt\n") },
		"attributes":     func(r *repo.Repo) { write(t, filepath.Join(r.Root, ".gitattributes"), "*.txt text eol=lf\n") },
	}
	own := map[string]func(w *repo.Worktree){
		"nothing more":  func(*repo.Worktree) {},
		"ignored files": func(w *repo.Worktree) { write(t, filepath.Join(w.Path, "a.log"), "log\n") },
		"a reserved file": func(w *repo.Worktree) {
			write(t, filepath.Join(w.Path, ".beads", "issues.jsonl"), "mine\n")
		},
		"touched files": func(w *repo.Worktree) {
			now := time.Now()
			must(t, os.Chtimes(filepath.Join(w.Path, "file1.txt"), now, now))
			must(t, os.Chtimes(filepath.Join(w.Path, "file4.txt"), now, now))
		},
	}
	for theirs, change := range target {
		for ours, have := range own {
			t.Run(theirs+", "+ours, func(t *testing.T) {
				r := sample(t)
				w := add(t, r, "T")
				write(t, filepath.Join(w.Path, "new.txt"), "new\n")
				write(t, filepath.Join(w.Path, "file1.txt"), "one\ntwo\nthree 1\nfour\n")
				commitAll(t, w, "mine")
				change(r)
				gitIn(t, r.Root, "add", "-A", "-f", "--", ".", ":!.coven")
				gitIn(t, r.Root, "commit", "-qm", "theirs")
				have(w)
				landing := value[integrate.Landing](t)(integrate.Merge(t.Context(), w, targetOf(r, t)))
				ix := value[*content.Index](t)(content.Open(w, w.Git(), content.CommitIndex))
				defer ix.Drop()
				equal(t, "known", ix.KnownTree(), landing.Tree)
				equal(t, "by git", value[string](t)(ix.WriteTree(t.Context())), landing.Tree)
				equal(t, "the branch", gitIn(t, r.Root, "rev-parse", landing.Tip+"^{tree}"), landing.Tree)
				equal(t, "W", value[string](t)(content.Tree(t.Context(), w)), landing.Tree)
				if ours == "nothing more" && theirs == "another file" {
					equal(t, "nothing else is there", content.HoldsOnly(t.Context(), w, landing.Tree), true)
				}
			})
		}
	}
}

// A file that was touched between the comparison and the move has not changed. A file that was edited has.
func TestSwitchToTouched(t *testing.T) {
	for what, edit := range map[string]func(name string){
		"touched": func(name string) {
			long := time.Now().Add(-time.Hour)
			must(t, os.Chtimes(name, long, long))
		},
		"edited": func(name string) { must(t, os.WriteFile(name, []byte("mine\n"), 0o644)) },
	} {
		t.Run(what, func(t *testing.T) {
			r := sample(t)
			w := add(t, r, "T")
			from := gitIn(t, r.Root, "rev-parse", "main^{tree}")
			name := filepath.Join(w.Path, "file1.txt")
			write(t, filepath.Join(r.Root, "file1.txt"), "theirs\n")
			gitIn(t, r.Root, "commit", "-qam", "theirs")
			to := gitIn(t, r.Root, "rev-parse", "main^{tree}")
			ix, staged, err := content.StageOn(t.Context(), w, value[string](t)(w.Tip(t.Context())), nil)
			must(t, err)
			defer ix.Drop()
			equal(t, "staged", staged, from)
			edit(name)
			err = ix.SwitchTo(t.Context(), from, to, content.ShowNone)
			if what == "touched" {
				must(t, err)
				equal(t, "the file", read(t, name), "theirs\n")
			} else if err == nil || read(t, name) != "mine\n" {
				t.Errorf("an edited file was overwritten: %v", err)
			}
		})
	}
}

// A target's tree may contain names that are not valid in a path, or names that occur twice, as a file and
// as a directory. Then git decides, and nothing hangs.
func TestIntegrateOddNames(t *testing.T) {
	for _, name := range []string{"/", "/x", "a/b", "", "dir"} {
		t.Run(name, func(t *testing.T) {
			r := sample(t)
			w := add(t, r, "T")
			write(t, filepath.Join(w.Path, "new.txt"), "new\n")
			commitAll(t, w, "mine")
			oid := value[[]byte](t)(hex.DecodeString(gitIn(t, r.Root, "rev-parse", "main:file1.txt")))
			raw := value[[]byte](t)(exec.CommandContext(t.Context(), "git", "-C", r.Root, "cat-file", "tree", "main^{tree}").Output())
			at := 0 // git's position of the name
			for at < len(raw) {
				_, have, _ := strings.Cut(string(raw[at:at+bytes.IndexByte(raw[at:], 0)]), " ")
				if have > name {
					break
				}
				at += bytes.IndexByte(raw[at:], 0) + 1 + len(oid)
			}
			file := filepath.Join(t.TempDir(), "tree")
			must(t, os.WriteFile(file, slices.Concat(raw[:at], []byte("100644 "+name+"\x00"), oid, raw[at:]), 0o600))
			tree := gitIn(t, r.Root, "hash-object", "-t", "tree", "--literally", "-w", file)
			gitIn(t, r.Root, "update-ref", "refs/heads/main", gitIn(t, r.Root, "commit-tree", "-p", "main", "-m", "odd", tree))
			landing, err := integrate.Merge(t.Context(), w, targetOf(r, t))
			if err == nil && name != "dir" {
				t.Errorf("merged as %s", landing.Tree)
			}
			if err == nil {
				equal(t, "merged", landing.Tree, gitIn(t, r.Root, "merge-tree", "--write-tree", landing.Tip+"^1", landing.Tip+"^2"))
			}
		})
	}
}
