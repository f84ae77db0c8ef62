package worktree

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/coven-run/coven/worktree/snapshot"
)

// BenchmarkSnapshot measures a snapshot after a change of one file, in repositories of several sizes,
// compared with git status with an untracked cache. ratio is the quotient of the medians.
func BenchmarkSnapshot(b *testing.B) {
	for _, files := range []int{200, 10_000, 80_000} {
		b.Run(fmt.Sprintf("files=%d", files), func(b *testing.B) {
			r := sample(b)
			for i := range files {
				name := filepath.Join(r.Root, fmt.Sprintf("many%d/%d/%d.txt", i/10_000, i/100, i))
				must(b, os.MkdirAll(filepath.Dir(name), 0o755))
				must(b, os.WriteFile(name, fmt.Append(nil, i), 0o644))
			}
			gitIn(b, r.Root, "add", "-A")
			gitIn(b, r.Root, "-c", "gc.auto=0", "commit", "-qm", "many")
			gitIn(b, r.Root, "repack", "-q", "-a", "-d")
			old := time.Now().Add(-time.Hour) // git reads newer files again each time
			must(b, os.Chtimes(filepath.Join(r.GitDir, "config"), old, old))
			w := add(b, r, "T")
			n := 0
			edit := func() {
				n++
				write(b, filepath.Join(w.Path, "many0/1/150.txt"), fmt.Sprint("edit ", n))
			}
			edit()
			value[snapshot.Snapshot](b)(snapshot.Take(b.Context(), w, "s", ""))
			gitIn(b, w.Path, "update-index", "--untracked-cache")
			gitIn(b, w.Path, "status")
			compare(b, edit, func() {
				value[snapshot.Snapshot](b)(snapshot.Take(b.Context(), w, "s", ""))
			}, "-C", w.Path, "-c", "core.untrackedCache=true", "status", "--porcelain")
		})
	}
}

// compare alternately measures work and a git command, each after prepare, and reports the medians.
func compare(b *testing.B, prepare, work func(), floor ...string) {
	var ours, theirs []time.Duration
	timed := func(f func()) time.Duration {
		prepare()
		start := time.Now()
		f()
		return time.Since(start)
	}
	for range max(b.N, 7) {
		ours = append(ours, timed(work))
		theirs = append(theirs, timed(func() { must(b, exec.CommandContext(context.Background(), "git", floor...).Run()) }))
	}
	slices.Sort(ours)
	slices.Sort(theirs)
	mine, least := ours[len(ours)/2], theirs[len(theirs)/2]
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(mine.Microseconds())/1000, "ms")
	b.ReportMetric(float64(least.Microseconds())/1000, "floor-ms")
	b.ReportMetric(float64(mine)/float64(least), "ratio")
}
