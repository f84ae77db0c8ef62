package worktree

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/coven-run/coven/worktree/internal/repo"
	"github.com/coven-run/coven/worktree/isolation"
	"github.com/coven-run/coven/worktree/pool"
	"github.com/coven-run/coven/worktree/snapshot"
)

// The costs of operations on worktrees, in comparison with the least git command that is needed, measured
// in the same run. The results are in docs/benchmarks.md.

const costRounds = 7

// A costRow is an operation with its target costs and its last recorded costs, as multiples of its floor,
// by the number of files in the repository.
type costRow struct {
	name              string
	targets, recorded map[int]float64
}

// limit returns the limit for TestCosts: 1.5 times the target, or 1.5 times the record if that misses the
// target.
func (r costRow) limit(files int) float64 { return 1.5 * max(r.targets[files], r.recorded[files]) }

func costRows() []costRow {
	return []costRow{
		{"add", map[int]float64{10_000: 0.17, 80_000: 0.08}, map[int]float64{200: 1.3, 10_000: 0.7}},
		{"release", map[int]float64{200: 10}, map[int]float64{10_000: 26, 80_000: 194}},
		{"snapshot", map[int]float64{80_000: 1.15}, map[int]float64{200: 9.4, 10_000: 5}},
		{"revert", nil, map[int]float64{200: 20, 10_000: 80, 80_000: 400}},
	}
}

// costs contains the measurements of the rows by name.
type costs map[string]*struct{ took, floor []time.Duration }

func (c costs) note(name string, took, floor time.Duration) {
	if c[name] == nil {
		c[name] = &struct{ took, floor []time.Duration }{}
	}
	c[name].took, c[name].floor = append(c[name].took, took), append(c[name].floor, floor)
}

// of returns the medians of a row, and the median of the ratios. Each ratio is that of two consecutive
// measurements.
func (c costs) of(name string) (took, floor time.Duration, ratio float64) {
	var ratios []float64
	for i, t := range c[name].took {
		ratios = append(ratios, float64(t)/float64(c[name].floor[i]))
	}
	return median(c[name].took), median(c[name].floor), median(ratios)
}

func median[T cmp.Ordered](values []T) T {
	return slices.Sorted(slices.Values(values))[len(values)/2]
}

// BenchmarkCosts measures, in repositories of several sizes: add, a worktree from the pool in which 100
// files differ, with its private common directory, compared with git worktree add; release, the time that a
// user waits while a landed worktree goes to the pool, compared with a git command that reads one ref;
// snapshot, of a worktree in which any file may have changed, compared with git status with its untracked
// cache; and revert, of one file, compared with a git command that reads one ref.
func BenchmarkCosts(b *testing.B) {
	for _, files := range []int{200, 10_000, 80_000} {
		measured := costs(nil)
		for _, row := range costRows() {
			b.Run(fmt.Sprintf("%d/%s", files, row.name), func(b *testing.B) {
				if measured == nil {
					measured = costsAt(b, files)
				}
				took, floor, ratio := measured.of(row.name)
				b.ReportMetric(0, "ns/op")
				b.ReportMetric(took.Seconds()*1000, "ms")
				b.ReportMetric(floor.Seconds()*1000, "floor-ms")
				b.ReportMetric(ratio, "x/floor")
			})
		}
	}
}

// TestCosts fails if an operation has become much slower.
func TestCosts(t *testing.T) {
	sizes := []int{200, 10_000}
	switch os.Getenv("COVEN_SPEED") {
	case "":
		t.Skip("make speed and make speed-short run it")
	case "short":
		sizes = []int{10_000}
	}
	for _, files := range sizes {
		measured := costsAt(t, files)
		for _, row := range costRows() {
			took, _, ratio := measured.of(row.name)
			t.Logf("%d files, %s: %.1f ms, %.2f of the floor; the target is %.2f", files, row.name, took.Seconds()*1000, ratio, row.targets[files])
			if limit := row.limit(files); ratio > limit {
				t.Errorf("%d files, %s: %.2f of the floor, more than %.2f", files, row.name, ratio, limit)
			}
		}
	}
}

// costsAt measures all rows in a repository with the given number of files.
func costsAt(b testing.TB, files int) costs {
	b.Helper()
	found := costs{}
	r := largeRepo(b, files)
	r.Pool = repo.Pool{Bytes: 8 << 30}
	passWorktree(b, r, 0, costs{}) // the pool is empty
	for round := range costRounds {
		passWorktree(b, r, round+1, found)
	}
	measureSnapshots(b, r, files, found)
	return found
}

// largeRepo creates a repository with the given number of files, 100 in each directory, on a file system
// where the disk does not matter.
func largeRepo(b testing.TB, files int) *repo.Repo {
	b.Helper()
	parent := "/dev/shm"
	if info, err := os.Stat(parent); err != nil || !info.IsDir() {
		parent = ""
	}
	root := value[string](b)(os.MkdirTemp(parent, "cv"))
	b.Cleanup(func() { _ = os.RemoveAll(root) })
	for i := range files {
		write(b, largeFile(root, i), fmt.Sprintf("file %d\n", i))
	}
	gitIn(b, root, "init", "-q", "-b", "main")
	gitIn(b, root, "add", "-A")
	gitIn(b, root, "commit", "-qm", "many files")
	return value[*repo.Repo](b)(repo.Open(b.Context(), root))
}

func largeFile(root string, i int) string {
	return filepath.Join(root, fmt.Sprintf("dir%d/file%d.txt", i/100, i))
}

// passWorktree measures taking a worktree from the pool, and returning it after a landing.
func passWorktree(b testing.TB, r *repo.Repo, round int, found costs) {
	b.Helper()
	for i := range 100 {
		write(b, largeFile(r.Root, i), fmt.Sprintf("round %d\n", round))
	}
	gitIn(b, r.Root, "commit", "-qam", "others")
	var w *repo.Worktree
	took := timeOf(func() {
		w = value[*repo.Worktree](b)(Add(b.Context(), r, AddRequest{TaskID: "T", Base: "main"}))
		must(b, isolation.Begin(b.Context(), w))
	})
	beside := filepath.Join(filepath.Dir(r.Root), filepath.Base(r.Root)+"-beside")
	floor := timeOf(func() { gitIn(b, r.Root, "worktree", "add", "-q", "--detach", beside, "main") })
	gitIn(b, r.Root, "worktree", "remove", "--force", beside)
	found.note("add", took, floor)

	must(b, isolation.TakeCommits(b.Context(), w))
	write(b, filepath.Join(w.Path, "work"), fmt.Sprint(round))
	commitAll(b, w, "work")
	gitIn(b, r.Root, "merge", "-q", "--ff-only", landedTip(b, w))
	tip := landedTip(b, w)
	took = timeOf(func() { value[string](b)(Remove(b.Context(), w, RemoveRequest{Landed: tip})) })
	pool.Wait(r)
	found.note("release", took, timeOf(func() { readRef(b, r) }))
}

// measureSnapshots measures snapshots of a worktree, and reverts of one file.
func measureSnapshots(b testing.TB, r *repo.Repo, files int, found costs) {
	b.Helper()
	w := add(b, r, "S")
	must(b, isolation.Begin(b.Context(), w))
	beside := filepath.Join(filepath.Dir(r.Root), filepath.Base(r.Root)+"-beside")
	gitIn(b, r.Root, "worktree", "add", "-q", "--detach", beside, "main")
	b.Cleanup(func() { _ = os.RemoveAll(beside) })
	for i := range files { // git would read files as old as its index each time
		must(b, os.Chtimes(largeFile(beside, i), time.Time{}, time.Now().Add(-time.Hour)))
	}
	gitIn(b, beside, "update-index", "--refresh", "--force-untracked-cache")
	status := func() { gitIn(b, beside, "-c", "core.untrackedCache=true", "status", "--porcelain") }
	status()
	value[snapshot.Snapshot](b)(snapshot.Take(b.Context(), w, "s", ""))
	name, _ := filepath.Rel(r.Root, largeFile(r.Root, 150))
	for round := range costRounds {
		for _, dir := range []string{w.Path, beside} {
			write(b, filepath.Join(dir, name), fmt.Sprint("agent ", round))
		}
		var s snapshot.Snapshot
		took := timeOf(func() { s = value[snapshot.Snapshot](b)(snapshot.Take(b.Context(), w, "s", "")) })
		found.note("snapshot", took, timeOf(status))

		write(b, filepath.Join(w.Path, name), "wrong")
		took = timeOf(func() { value[snapshot.Snapshot](b)(snapshot.Revert(b.Context(), w, "s", s.N, name)) })
		found.note("revert", took, timeOf(func() { readRef(b, r) }))
		equal(b, "reverted", read(b, filepath.Join(w.Path, name)), fmt.Sprint("agent ", round))
	}
}

func timeOf(do func()) time.Duration {
	start := time.Now()
	do()
	return time.Since(start)
}

// readRef runs the cheapest git command.
func readRef(b testing.TB, r *repo.Repo) {
	b.Helper()
	must(b, exec.CommandContext(b.Context(), "git", "--git-dir="+r.GitDir, "rev-parse", "HEAD").Run())
}
