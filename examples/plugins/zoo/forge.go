package main

import (
	"context"
	"os"
	"strings"
	"syscall"

	"github.com/coven-run/coven/plugins/forge"
)

// liar is a forge that violates the contract in the way that the number of the asked pull request selects.
type liar struct{}

// Poll implements forge.Forge.
func (liar) Poll(_ context.Context, query forge.Query) (forge.Report, error) {
	number := query.Known[0].Number
	pull := forge.PullRequest{Number: number, URL: "https://example.com/1", State: forge.Open, Head: strings.Repeat("0", 40), Base: "main"}
	report := forge.Report{}
	switch number {
	case 1:
		pull.State = "fine"
	case 2:
		pull.Base = "--upload-pack=touch /tmp/x"
	case 3:
		for range 40 {
			pull.Comments = append(pull.Comments, forge.Comment{ID: "1", Text: strings.Repeat("z", 1<<20)})
		}
	case 4:
		hang()
	case 5:
		_, _ = syscall.Write(2, []byte("I have had enough\n"))
		os.Exit(7)
	case 6:
		pull.Number = 7
	case 7:
		pull.Needs = "\x1b]0;mine\x07"
	case 8:
		report.Moved = "../../other"
	}
	report.Changed = []forge.PullRequest{pull}
	return report, nil
}

// Log implements forge.Forge. Its log is longer than it may be.
func (liar) Log(_ context.Context, _ forge.Repository, _ forge.Check, limit int) (string, error) {
	return strings.Repeat("z", limit+1), nil
}

// Merge implements forge.Forge.
func (liar) Merge(context.Context, forge.Repository, forge.Merge) (string, error) { return "main", nil }

// Open implements forge.Forge.
func (liar) Open(context.Context, forge.Request) (forge.PullRequest, error) {
	return forge.PullRequest{}, nil
}

// Rerun implements forge.Forge.
func (liar) Rerun(context.Context, forge.Repository, forge.Check) error { return nil }

// Reply implements forge.Forge.
func (liar) Reply(context.Context, forge.Repository, forge.Reply) error { return nil }
