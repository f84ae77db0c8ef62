package session

import (
	"testing"
)

// BenchmarkSummaries lists 10,000 ended sessions in a new process.
func BenchmarkSummaries(b *testing.B) {
	root := b.TempDir()
	indexedProject(b, root, 10_000)
	for b.Loop() {
		all, err := finderAt(root, later).Summaries()
		ok(b, err)
		if len(all) != 10_000 {
			b.Fatalf("%d sessions", len(all))
		}
	}
}
