package worktree

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coven-run/coven/worktree/integrate"
	"github.com/coven-run/coven/worktree/internal/repo"
)

// sandboxed makes the worktree run merge drivers, with SANDBOX set. It returns the directories that they could write.
func sandboxed(w *repo.Worktree) *[]string {
	var dirs []string
	w.RunDriver = func(ctx context.Context, command, dir string) (bool, error) {
		dirs = append(dirs, dir)
		cmd := exec.CommandContext(ctx, "/bin/sh", "-c", command)
		cmd.Dir, cmd.Env = w.Path, append(os.Environ(), "SANDBOX=1")
		err := cmd.Run()
		if failed := (*exec.ExitError)(nil); errors.As(err, &failed) {
			err = nil
		}
		return err == nil && cmd.ProcessState.Success(), err
	}
	return &dirs
}

// The merge drivers of the configuration run only in the sandbox, and the result is that of git.
func TestMergeDrivers(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "outside")
	for name, c := range map[string]struct {
		driver    string
		conflicts string
	}{
		"union":               {driver: `git merge-file -p --union %A %O %B > %A.new && mv %A.new %A`},
		"arguments":           {driver: `{ cat %O %A %B; echo %L %P 100%%; } > %A.new; mv %A.new %A`},
		"keeps one version":   {driver: "true"},
		"fails":               {driver: "echo half >> %A; exit 3", conflicts: "it's a lock.json|sub/b.json"},
		"fails for one":       {driver: `case %P in *lock*) exit 1;; *) cat %B >> %A;; esac`, conflicts: "it's a lock.json"},
		"nothing is executed": {driver: "no-such-program %A", conflicts: "it's a lock.json|sub/b.json"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			r := sample(t)
			w := add(t, r, "T")
			onMain(t, r, ".gitattributes", "*.json merge=100%-mine\n")
			for _, file := range []string{"it's a lock.json", "sub/b.json", "plain.txt"} {
				onMain(t, r, file, "1\n2\n3\n4\n5\n6\n7\n8\n")
			}
			value[integrate.Landing](t)(integrate.Merge(ctx, w, targetOf(r, t)))
			for _, file := range []string{"it's a lock.json", "sub/b.json"} {
				write(t, filepath.Join(w.Path, file), "mine\n2\n3\n4\n5\n6\n7\n8\n")
				onMain(t, r, file, "theirs\n2\n3\n4\n5\n6\n7\n8\n")
			}
			write(t, filepath.Join(w.Path, "plain.txt"), "1\n2\n3\n4\n5\n6\n7\nmine\n")
			onMain(t, r, "plain.txt", "theirs\n2\n3\n4\n5\n6\n7\n8\n")
			tip := commitAll(t, w, "mine").Oid
			gitIn(t, r.Root, "config", "merge.100%-mine.driver", c.driver)
			want, _ := exec.Command("git", "-C", r.Root, "merge-tree", "--write-tree", "--no-messages", tip, "main").Output() // fails for a conflict
			gitIn(t, r.Root, "config", "merge.100%-mine.driver", `test "$SANDBOX" || echo x >> `+outside+"; "+c.driver)

			_, err := integrate.Merge(ctx, w, targetOf(r, t))
			conflict := wantError[*integrate.ConflictError](t, err)
			equal(t, "without a sandbox", strings.Join(conflict.Files, "|"), "it's a lock.json|sub/b.json")

			dirs := sandboxed(w)
			got, err := integrate.Merge(ctx, w, targetOf(r, t))
			if conflict := (*integrate.ConflictError)(nil); errors.As(err, &conflict) {
				equal(t, "conflicts", strings.Join(conflict.Files, "|"), c.conflicts)
			} else {
				equal(t, "tree", value[integrate.Landing](t)(got, err).Tree, strings.TrimSpace(string(want)))
				equal(t, "conflicts", c.conflicts, "")
			}
			equal(t, "runs", len(*dirs), 2)
			equal(t, "what is left", len(left(w)), 0)
			if _, err := os.Stat(outside); err == nil {
				t.Error("a driver ran outside the sandbox")
			}
		})
	}
}

// left returns the files of merge drivers that a merge left.
func left(w *repo.Worktree) []os.DirEntry {
	entries, _ := os.ReadDir(w.StatePath("merge-drivers"))
	return entries
}

// A driver that merges the several bases of a criss-cross history first, too.
func TestMergeDriverOfSeveralBases(t *testing.T) {
	ctx := t.Context()
	r := sample(t)
	onMain(t, r, ".gitattributes", "a.json merge=all\n")
	onMain(t, r, "a.json", "base\n")
	w := add(t, r, "T")
	dirs := sandboxed(w)
	gitIn(t, r.Root, "config", "merge.all.driver", `cat %O %A %B > %A.new; mv %A.new %A`)
	one := gitIn(t, r.Root, "rev-parse", "main")
	version := func(text string, parents ...string) string {
		write(t, filepath.Join(r.Root, "a.json"), text)
		gitIn(t, r.Root, "add", "a.json")
		args := []string{"commit-tree", "-m", text, gitIn(t, r.Root, "write-tree")}
		for _, p := range parents {
			args = append(args, "-p", p)
		}
		return gitIn(t, r.Root, args...)
	}
	left, right := version("left\n", one), version("right\n", one)
	ours, theirs := version("ours\n", left, right), version("theirs\n", right, left)
	want := gitIn(t, r.Root, "merge-tree", "--write-tree", ours, theirs)
	equal(t, "tree", value[string](t)(integrate.MergeTree(ctx, w, ours, theirs)), want)
	equal(t, "runs", len(*dirs), 3) // once with a base that is not merged yet
}

// A driver that removes its result, or replaces it by a link, has not merged.
func TestMergeDriverWithoutResult(t *testing.T) {
	for _, command := range []string{"rm %A", "ln -sf /etc/passwd %A", "rm %A; mkdir %A"} {
		r := sample(t)
		onMain(t, r, ".gitattributes", "file0.txt merge=odd\n")
		w := add(t, r, "T")
		sandboxed(w)
		write(t, filepath.Join(w.Path, "file0.txt"), "mine\n")
		commitAll(t, w, "mine")
		onMain(t, r, "file0.txt", "theirs\n")
		gitIn(t, r.Root, "config", "merge.odd.driver", command)
		_, err := integrate.Merge(t.Context(), w, targetOf(r, t))
		equal(t, command, strings.Join(wantError[*integrate.ConflictError](t, err).Files, "|"), "file0.txt")
	}
}
