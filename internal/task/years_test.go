package task

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/coven-run/coven/internal/fake/fakebd"
)

// years is the number of beads of a repository that is as old as beads.
const years = 337

// The file and the program agree on which of the 337 tasks are ready, and when.
func TestReadyOfYears(t *testing.T) {
	for kind, program := range map[string]func(*testing.T) string{"fake bd": fakeProgram, "bd": realBD} {
		t.Run(kind, func(t *testing.T) {
			issues := fakebd.Issues(years)
			c := bdSite(t, program(t), issues).cli(t)
			f := tracker(t, string(issues))
			want, err := f.Ready(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			got, err := c.Ready(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if ids(got) != ids(want) || len(want) < 20 {
				t.Errorf("ready\n%s\nof the file\n%s", ids(got), ids(want))
			}
			all, err := c.List(t.Context())
			if err != nil || len(all) < years-years/31-1 {
				t.Errorf("%d tasks, %v", len(all), err)
			}
			blocked := 0
			for _, one := range all[:60] {
				here, err := f.Blockers(t.Context(), one.ID)
				if err != nil {
					t.Fatal(err)
				}
				there, err := c.Blockers(t.Context(), one.ID)
				if err != nil {
					t.Fatal(err)
				}
				slices.Sort(here)
				slices.Sort(there)
				if !slices.Equal(here, there) {
					t.Errorf("%s is blocked by %v, in the file by %v", one.ID, there, here)
				}
				blocked += min(1, len(here))
			}
			if blocked < 5 {
				t.Errorf("only %d of 60 are blocked", blocked)
			}
		})
	}
}

// Completing a task changes its own line and no other byte of the 337 beads.
func TestYearsStayAsTheyAre(t *testing.T) {
	before := fakebd.Issues(years)
	f := tracker(t, string(before))
	ready, err := f.Ready(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range []Task{ready[0], ready[len(ready)-1]} {
		if _, err := f.Claim(t.Context(), one.ID, "coven/1"); err != nil {
			t.Fatal(err)
		}
		if _, err := f.Close(t.Context(), one.ID, "coven/1", "done"); err != nil {
			t.Fatal(err)
		}
		after := []byte(content(t, f))
		if n := differ(t, before, after, one.ID); n != 1 {
			t.Errorf("%s: %d lines changed", one.ID, n)
		}
		before = after
	}
}

// differ counts the lines that differ. All of them must belong to one task.
func differ(t *testing.T, before, after []byte, id string) int {
	t.Helper()
	was, is := bytes.SplitAfter(before, []byte("\n")), bytes.SplitAfter(after, []byte("\n"))
	if len(was) != len(is) {
		t.Fatalf("%d lines became %d", len(was), len(is))
	}
	n := 0
	for i := range was {
		if bytes.Equal(was[i], is[i]) {
			continue
		}
		n++
		if !strings.Contains(string(was[i]), `"id":"`+id+`"`) || !strings.Contains(string(is[i]), `"status":"closed"`) {
			t.Errorf("line %d changed: %s", i+1, is[i])
		}
	}
	return n
}
