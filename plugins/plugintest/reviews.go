package plugintest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coven-run/coven/plugins/hostservice"
	"github.com/coven-run/coven/plugins/pluginerr"
	"github.com/coven-run/coven/plugins/reviewer"
)

// reviews returns the cases of reviewers. They share a repository; the last case checks that the reviews
// did not change its worktree.
func reviews() []testcase {
	return []testcase{
		{"empty change", "an empty change is reviewed", reviewed(nil, nil)},
		{"kinds of change", "added, changed, deleted, renamed and binary files, and links", reviewed(manyKinds, nil)},
		{"cut diff", "a truncated diff", reviewed(manyKinds, func(c *reviewer.Change) {
			c.Diff, c.Truncated = c.Diff[:strings.Index(c.Diff[1:], "diff --git")+1], "the diff has 900 KiB and 400 KiB are shown; left out: app.go and 3 more"
		})},
		{"large diff", "a diff of 1 MiB", reviewed(large, nil)},
		{"odd paths", "deep paths, spaces, quotes, all alphabets", reviewed(oddPaths, nil)},
		{"odd texts", "a task and a diff with control characters and without line ends", reviewed(manyKinds, func(c *reviewer.Change) {
			c.Task = reviewer.Task{ID: "t-\u202e1", Title: "Über \x1b[31mred\x00", Description: strings.Repeat("long ", 40_000), Acceptance: []string{"", "ok\n"}}
			c.Diff = strings.TrimSuffix(c.Diff, "\n") + "\r\x00"
		})},
		{"second round", "a change with the findings of the previous round", reviewed(manyKinds, func(c *reviewer.Change) {
			c.Round = 2
			c.Previous = []reviewer.Finding{{Severity: reviewer.Error, File: "gone.go", Line: 7, Message: "it is gone", Suggestion: "put it back"}, {Severity: reviewer.Info, Message: "all of it"}}
		})},
		{"unknown option", "an unknown option is ignored or named in an error", unknownOption},
		{"no services", "if coven's services fail, the reviewer does without them or returns an error", withoutServices},
		{"read only", "reviews do not change the worktree", readOnly},
	}
}

// simple returns a simple change for cases that do not test the review itself.
func (s *suite) simple() reviewer.Change {
	return reviewer.Change{
		Task: reviewer.Task{ID: "t-1", Title: "Say hello"}, Dir: s.repo.Dir, Base: strings.Repeat("0", 40), Tree: strings.Repeat("0", 40), Round: 1,
		Diff:    "diff --git a/hello.txt b/hello.txt\nnew file mode 100644\n--- /dev/null\n+++ b/hello.txt\n@@ -0,0 +1 @@\n+hello\n",
		Files:   []reviewer.File{{Path: "hello.txt", Status: "A", Added: 1}},
		Options: s.options.With,
	}
}

// changed creates a change in the suite's repository. prepare edits the worktree after the base commit.
func (s *suite) changed(prepare func(r *Repo) error) (reviewer.Change, *Services, error) {
	host := s.services()
	files := map[string]string{
		"go.mod": "module example.test/app\n\ngo 1.24\n", "app.go": "package app\n\n// Answer is it.\nfunc Answer() int { return 41 }\n",
		"gone.go": "package app\n", "docs/old name.md": "# Old\n\none\ntwo\nthree\nfour\n", "run.sh": "#!/bin/sh\necho hello\n",
	}
	if err := s.repo.commit(files); err != nil {
		return reviewer.Change{}, nil, err
	}
	if prepare != nil {
		if err := prepare(s.repo); err != nil {
			return reviewer.Change{}, nil, err
		}
	}
	c, err := s.repo.change()
	if err != nil {
		return reviewer.Change{}, nil, err
	}
	c.Task = reviewer.Task{ID: "t-1", Title: "Fix the answer", Description: "It should be 42.", Acceptance: []string{"the answer is 42"}}
	c.Options = s.options.With
	host.Patch, host.Files = c.Diff, map[string][]byte{}
	for _, f := range c.Files {
		if text, err := os.ReadFile(filepath.Join(s.repo.Dir, filepath.FromSlash(f.Path))); err == nil {
			host.Files[f.Path] = text
		}
	}
	return c, host, nil
}

// judged runs a review and records the files of the worktree that it changed.
func (s *suite) judged(ctx context.Context, change reviewer.Change, host hostservice.Services) error {
	before, err := s.repo.State()
	if err != nil {
		return err
	}
	judged := s.within(ctx, func(ctx context.Context) error {
		return s.review(ctx, change, host)
	})
	after, err := s.repo.State()
	if err != nil {
		return err
	}
	for _, file := range slices.Sorted(maps.Keys(after)) {
		if before[file] != after[file] {
			s.wrote = append(s.wrote, file)
		}
	}
	for _, file := range slices.Sorted(maps.Keys(before)) {
		if _, ok := after[file]; !ok {
			s.wrote = append(s.wrote, file+" (deleted)")
		}
	}
	return judged
}

// reviewed returns the case for a change. prepare edits the worktree, and adapt modifies the request.
func reviewed(prepare func(r *Repo) error, adapt func(c *reviewer.Change)) func(context.Context, *suite) error {
	return func(ctx context.Context, s *suite) error {
		if err := s.working(); err != nil {
			return err
		}
		change, host, err := s.changed(prepare)
		if err != nil {
			return err
		}
		if adapt != nil {
			adapt(&change)
		}
		return s.judged(ctx, change, host)
	}
}

func manyKinds(r *Repo) error {
	err := r.write(map[string]string{
		"app.go": "package app\n\n// Answer is it.\nfunc Answer() int { return 42 }\n", "new.go": "package app\n\nvar answer = Answer()\n",
		"picture.png": "\x89PNG\r\n\x1a\n\x00\x00\x00\xff\xfe", "no-newline": "end", "latin1.txt": "caf\xe9\n", "empty": "",
	})
	return errors.Join(err, os.Remove(filepath.Join(r.Dir, "gone.go")),
		os.Rename(filepath.Join(r.Dir, "docs", "old name.md"), filepath.Join(r.Dir, "docs", "new name.md")),
		os.Remove(filepath.Join(r.Dir, "run.sh")), os.Symlink("app.go", filepath.Join(r.Dir, "run.sh")))
}

func large(r *Repo) error {
	var b strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&b, "%06d the quick brown fox jumps over the lazy dog\n", i)
	}
	return r.write(map[string]string{"large.txt": b.String()})
}

func oddPaths(r *Repo) error {
	return r.write(map[string]string{
		"ünï/файл 名.txt": "x\n", "with \"quotes\" and 'more'.txt": "x\n", "-leading.txt": "x\n", "tab\tin.txt": "x\n", "back\\slash.txt": "x\n",
		"a b/" + strings.Repeat("deep/", 30) + "file.txt": "x\n", "$(touch pwned)`touch pwned`;touch pwned.txt": "x\n", "🦉.md": "# Owl\n",
	})
}

func unknownOption(ctx context.Context, s *suite) error {
	if err := s.working(); err != nil {
		return err
	}
	change, host, err := s.changed(manyKinds)
	if err != nil {
		return err
	}
	change.Options = withUnknown(s.options.With)
	return namesOption(s.judged(ctx, change, host))
}

// strange is an option that no plugin supports.
const strange = "strange-option"

func withUnknown(with map[string]string) map[string]string {
	all := maps.Clone(with)
	if all == nil {
		all = map[string]string{}
	}
	all[strange] = "x"
	return all
}

// namesOption accepts an error if it names the unknown option.
func namesOption(err error) error {
	switch {
	case err == nil, strings.Contains(err.Error(), strange):
		return nil
	case errors.Is(err, pluginerr.ErrGone), errors.Is(err, context.DeadlineExceeded):
		return err
	}
	return fmt.Errorf("the error does not name the option %s: %w", strange, err)
}

func withoutServices(ctx context.Context, s *suite) error {
	if err := s.working(); err != nil {
		return err
	}
	change, host, err := s.changed(manyKinds)
	if err != nil {
		return err
	}
	host.Before = refuse
	return spoken(s.judged(ctx, change, host))
}

// refuse rejects every request to coven's services.
func refuse(context.Context, string) error {
	return fmt.Errorf("not in this test: %w", pluginerr.ErrUnsupported)
}

// spoken accepts an error that a plugin returns deliberately, but not an error that shows that the plugin
// is broken.
func spoken(err error) error {
	if errors.Is(err, pluginerr.ErrGone) || errors.Is(err, context.DeadlineExceeded) || err != nil && strings.TrimSpace(err.Error()) == "" {
		return err
	}
	return nil
}

func readOnly(_ context.Context, s *suite) error {
	if err := s.working(); err != nil {
		return err
	}
	slices.Sort(s.wrote)
	if wrote := slices.Compact(s.wrote); len(wrote) > 0 {
		return fmt.Errorf("changed %s", strings.Join(wrote[:min(len(wrote), 10)], ", "))
	}
	return nil
}
