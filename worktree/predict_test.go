package worktree

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coven-run/coven/worktree/integrate"
	"github.com/coven-run/coven/worktree/internal/repo"
	"github.com/coven-run/coven/worktree/predict"
	"github.com/coven-run/coven/worktree/snapshot"
)

// changeOf takes a snapshot of a worktree and returns its change. Sessions are named like tasks.
func changeOf(t testing.TB, w *repo.Worktree, base string) predict.Change {
	t.Helper()
	value[snapshot.Snapshot](t)(snapshot.Take(t.Context(), w, w.TaskID, "now"))
	return value[predict.Change](t)(predict.Of(t.Context(), w.Repo, w.TaskID, base, predict.Change{}))
}

func TestPredictedConflicts(t *testing.T) {
	for _, test := range []struct {
		name     string
		one, two func(dir string)
		want     []string
	}{
		{"the same line", appends("file1.txt", "mine\n"), appends("file1.txt", "theirs\n"), []string{"file1.txt"}},
		{"the same change", appends("file1.txt", "both\n"), appends("file1.txt", "both\n"), nil},
		{"different files", appends("file1.txt", "mine\n"), appends("file2.txt", "theirs\n"), nil},
		{"two new files", appends("new.txt", "mine\n"), appends("new.txt", "theirs\n"), []string{"new.txt"}},
		{"deleted and changed", removes("file1.txt"), appends("file1.txt", "theirs\n"), []string{"file1.txt"}},
		{"a file where the other has a directory", appends("lib", "a file\n"), appends("lib/a.txt", "a\n"), []string{"lib~"}},
		{"a renamed directory with a new file", func(dir string) { _ = os.Rename(filepath.Join(dir, "dir"), filepath.Join(dir, "moved")) }, appends("dir/deep/new.txt", "n\n"), []string{"moved/deep/new.txt"}},
		{"tasks of the tracker", appends(".beads/issues.jsonl", "a\n"), appends(".beads/issues.jsonl", "b\n"), nil},
		{"nothing", func(string) {}, appends("file1.txt", "theirs\n"), nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := sample(t)
			base := targetOf(r, t).Tip
			one, two := add(t, r, "ONE"), add(t, r, "TWO")
			test.one(one.Path)
			test.two(two.Path)
			a, b := changeOf(t, one, base), changeOf(t, two, base)
			for _, pair := range [][2]predict.Change{{a, b}, {b, a}} {
				got := value[[]string](t)(predict.Conflicts(t.Context(), r, pair[0], pair[1]))
				if len(got) != len(test.want) || len(got) > 0 && !strings.HasPrefix(got[0], test.want[0]) {
					t.Errorf("%q, not %q", got, test.want)
				}
			}
		})
	}
}

func appends(name, text string) func(dir string) {
	return func(dir string) {
		path := filepath.Join(dir, name)
		old, _ := os.ReadFile(path)
		_ = os.MkdirAll(filepath.Dir(path), 0o755)
		_ = os.WriteFile(path, append(old, text...), 0o644)
	}
}

func removes(name string) func(dir string) {
	return func(dir string) { _ = os.Remove(filepath.Join(dir, name)) }
}

// Changes without a file in common need no git process.
func TestPredictionWithoutGit(t *testing.T) {
	r := sample(t)
	base := targetOf(r, t).Tip
	one, two := add(t, r, "ONE"), add(t, r, "TWO")
	appends("file1.txt", "a\n")(one.Path)
	appends("file2.txt", "b\n")(two.Path)
	value[snapshot.Snapshot](t)(snapshot.Take(t.Context(), one, "ONE", ""))
	value[snapshot.Snapshot](t)(snapshot.Take(t.Context(), two, "TWO", ""))
	count := countGit(t)
	a := value[predict.Change](t)(predict.Of(t.Context(), r, "ONE", base, predict.Change{}))
	b := value[predict.Change](t)(predict.Of(t.Context(), r, "TWO", base, predict.Change{}))
	if files, err := predict.Conflicts(t.Context(), r, a, b); err != nil || len(files) > 0 || count() > 0 {
		t.Errorf("%q, %v, %d git processes", files, err, count())
	}
	none := value[predict.Change](t)(predict.Of(t.Context(), r, "NONE", base, predict.Change{}))
	if files, err := predict.Conflicts(t.Context(), r, a, none); err != nil || len(files) > 0 {
		t.Error(files, err)
	}
}

// A merge driver of the user does not run for a prediction.
func TestPredictionRunsNoDriver(t *testing.T) {
	r := sample(t)
	ran := filepath.Join(t.TempDir(), "ran")
	gitIn(t, r.Root, "config", "merge.mine.driver", "touch "+ran+"; exit 1")
	write(t, filepath.Join(r.Root, ".gitattributes"), "*.txt merge=mine\n")
	gitIn(t, r.Root, "add", ".gitattributes")
	gitIn(t, r.Root, "commit", "-qm", "attributes")
	base := targetOf(r, t).Tip
	one, two := add(t, r, "ONE"), add(t, r, "TWO")
	appends("file1.txt", "a\n")(one.Path)
	appends("file1.txt", "b\n")(two.Path)
	if files, err := predict.Conflicts(t.Context(), r, changeOf(t, one, base), changeOf(t, two, base)); err != nil || len(files) > 0 {
		t.Error(files, err)
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("the driver ran")
	}
}

// score compares predictions with what happened.
type score struct{ right, wrong, missed, clean int }

func (s *score) add(predicted, happened bool) {
	switch {
	case predicted && happened:
		s.right++
	case predicted:
		s.wrong++
	case happened:
		s.missed++
	default:
		s.clean++
	}
}

func (s *score) precision() float64 { return float64(s.right) / float64(max(s.right+s.wrong, 1)) }

func (s *score) recall() float64 { return float64(s.right) / float64(max(s.right+s.missed, 1)) }

func (s *score) String() string {
	return fmt.Sprintf("precision %.2f, recall %.2f (%d right, %d wrong, %d missed, %d clean)", s.precision(), s.recall(), s.right, s.wrong, s.missed, s.clean)
}

// The predictions for two tasks are compared with the merge that follows when one has landed: those while both work, and those of
// their last snapshots.
func TestPredictionsAndMerges(t *testing.T) {
	rounds := 20
	if testing.Short() {
		rounds = 6
	}
	var early, late, files score
	for seed := range uint64(rounds) {
		random := rand.New(rand.NewPCG(seed, 38))
		r := sample(t)
		for i := range 6 {
			write(t, filepath.Join(r.Root, "src", fmt.Sprintf("f%d.go", i)), strings.Join(numbered(i, 60), ""))
		}
		gitIn(t, r.Root, "add", "-A")
		gitIn(t, r.Root, "commit", "-qm", "sources")
		target := targetOf(r, t)
		one, two := add(t, r, "ONE"), add(t, r, "TWO")
		work := func() {
			for _, w := range []*repo.Worktree{one, two} {
				for range 3 {
					edit(t, random, w.Path)
				}
			}
		}
		work()
		first := value[[]string](t)(predict.Conflicts(t.Context(), r, changeOf(t, one, target.Tip), changeOf(t, two, target.Tip)))
		work()
		last := value[[]string](t)(predict.Conflicts(t.Context(), r, changeOf(t, one, target.Tip), changeOf(t, two, target.Tip)))

		landed := commitAll(t, one, "one")
		commitAll(t, two, "two")
		gitIn(t, r.Root, "update-ref", target.Ref, landed.Oid)
		_, err := integrate.Merge(t.Context(), two, target)
		conflict := (*integrate.ConflictError)(nil)
		if err != nil && !errors.As(err, &conflict) {
			t.Fatal(err)
		}
		early.add(len(first) > 0, conflict != nil)
		late.add(len(last) > 0, conflict != nil)
		if conflict != nil {
			for _, f := range conflict.Files {
				files.add(slices.Contains(last, f), true)
			}
			for _, f := range last {
				if !slices.Contains(conflict.Files, f) {
					files.add(true, false)
				}
			}
		}
	}
	t.Logf("%d pairs, half way: %s", rounds, &early)
	t.Logf("%d pairs, at the end: %s; files: %s", rounds, &late, &files)
	if late.wrong+late.missed+files.wrong+files.missed > 0 || late.right == 0 || late.clean == 0 {
		t.Error("the last prediction is not the merge")
	}
	if !testing.Short() && (early.precision() < 0.7 || early.recall() < 0.3) {
		t.Error("the early predictions are too weak")
	}
}

// numbered returns n lines.
func numbered(file, n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprintf("line %d of %d\n", i, file))
	}
	return all
}

// edit makes a random change: to a few lines of a file, an undone change, a new, a renamed or a removed file.
func edit(t testing.TB, random *rand.Rand, dir string) {
	t.Helper()
	name := filepath.Join(dir, "src", fmt.Sprintf("f%d.go", random.IntN(6)))
	raw, err := os.ReadFile(name)
	switch kind := random.IntN(20); {
	case err != nil || kind == 0:
		write(t, filepath.Join(dir, "src", fmt.Sprintf("new%d.go", random.IntN(3))), fmt.Sprint("new ", random.Int(), "\n"))
	case kind == 1:
		must(t, os.Remove(name))
	case kind == 2 || kind == 3: // undo what was done to it
		file, _ := strings.CutPrefix(filepath.Base(name), "f")
		n := int(file[0] - '0')
		must(t, os.WriteFile(name, []byte(strings.Join(numbered(n, 60), "")), 0o644))
	case kind == 4:
		must(t, os.Rename(name, strings.TrimSuffix(name, ".go")+"_moved.go"))
	default:
		all := strings.SplitAfter(string(raw), "\n")
		at := random.IntN(max(len(all)-3, 1))
		for i := at; i < min(at+1+random.IntN(3), len(all)); i++ {
			all[i] = fmt.Sprint("changed ", random.Int(), "\n")
		}
		must(t, os.WriteFile(name, []byte(strings.Join(all, "")), 0o644))
	}
}
