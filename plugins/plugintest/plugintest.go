// Package plugintest holds plugins to their contract: a suite that runs against
// the binary of a plugin in any language (Run, which is what coven plugins test
// does), and a harness for the tests of an author (Start, Services, Repo).
//
// Rules:
//   - The suite knows nothing of the plugin's language. It starts the binary as
//     coven does, speaks the protocol to it, and looks from outside at what it does
//     to its process, its sockets and the worktree.
//   - A case fails only for what the contract demands, and says what that is. What
//     cannot be seen here is skipped, with the reason.
//   - Nothing of the plugin is left when Run returns: no process, no file.
package plugintest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"github.com/coven-run/coven/plugins"
	"github.com/coven-run/coven/plugins/pluginerr"
)

// Status is how a case ended.
type Status string

// The ends of a case.
const (
	Passed  Status = "passed"
	Failed  Status = "failed"
	Skipped Status = "skipped"
)

// Result is a case of the suite and how it ended.
type Result struct {
	Name   string `json:"name"`
	Demand string `json:"demand"` // what the contract demands
	Status Status `json:"status"`
	Detail string `json:"detail,omitempty"` // why it failed or was skipped
}

// Options are what Run and Start may be told.
type Options struct {
	Args       []string          // arguments of the binary; coven gives none
	With       map[string]string // options for a reviewer or an arbiter, as under `with` in a grimoire
	Transcript []byte            // of a provider: what its CLI once printed, whole lines
	Start      plugins.Starter   // what starts the plugin; nil: a plain process
	Ready      time.Duration     // how long the plugin may take to start; 0: 30 seconds
	Answer     time.Duration     // how long it may take for an answer; 0: a minute
	End        time.Duration     // how long it, or a call that was cancelled, may take to end; 0: 2 seconds
	Report     func(Result)      // is told each result as soon as it is known
}

func (o Options) ready() time.Duration {
	if o.Ready > 0 {
		return o.Ready
	}
	return 30 * time.Second
}

func (o Options) answer() time.Duration {
	if o.Answer > 0 {
		return o.Answer
	}
	return time.Minute
}

func (o Options) end() time.Duration {
	if o.End > 0 {
		return o.End
	}
	return 2 * time.Second
}

// The names of plugins' files.
var fileRE = regexp.MustCompile(`^coven-(provider|model|reviewer|arbiter)-([a-z0-9][a-z0-9-]*)$`)

// KindOf is the kind that the name of a plugin's file says: coven-KIND-NAME.
func KindOf(binary string) (plugins.Kind, error) {
	m := fileRE.FindStringSubmatch(filepath.Base(binary))
	if m == nil {
		return "", fmt.Errorf("%s is not named coven-KIND-NAME, so its kind is not known", filepath.Base(binary))
	}
	return plugins.Kind(m[1]), nil
}

// Run runs the suite of a kind against a binary; an empty kind is the one that the
// name of its file says. The error says that there was nothing to run the suite
// against, or that ctx ended before the suite did; what a plugin does wrong is in
// the results.
func Run(ctx context.Context, binary string, kind plugins.Kind, o Options) (results []Result, err error) {
	s, err := newSuite(binary, kind, o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	for _, c := range s.cases() {
		if ctx.Err() != nil {
			return s.results, context.Cause(ctx)
		}
		s.try(ctx, c)
	}
	return s.results, context.Cause(ctx)
}

// OK reports whether no case failed.
func OK(results []Result) bool {
	return !slices.ContainsFunc(results, func(r Result) bool { return r.Status == Failed })
}

// testcase is one case of the suite.
type testcase struct {
	name, demand string
	run          func(ctx context.Context, s *suite) error
}

// skip is what a case returns that cannot be tried.
type skip struct{ reason string }

func (s *skip) Error() string { return s.reason }

func skipf(format string, args ...any) error { return &skip{fmt.Sprintf(format, args...)} }

// suite is one run of the suite.
type suite struct {
	options Options
	binary  string
	kind    plugins.Kind
	home    *home
	repo    *Repo // for reviewers
	hosted  *Plugin
	results []Result
	wrote   []string // what reviews did to the worktree
}

func newSuite(binary string, kind plugins.Kind, o Options) (*suite, error) {
	if kind == "" {
		var err error
		if kind, err = KindOf(binary); err != nil {
			return nil, err
		}
	}
	if !slices.Contains(plugins.Kinds(), kind) {
		return nil, fmt.Errorf("%q is no kind of plugin", kind)
	}
	binary, err := runnable(binary)
	if err != nil {
		return nil, err
	}
	home, err := newHome()
	if err != nil {
		return nil, err
	}
	s := &suite{options: o, binary: binary, kind: kind, home: home}
	if kind == plugins.KindReviewer {
		if s.repo, err = newRepo(filepath.Join(home.root, "w")); err != nil {
			return nil, errors.Join(err, home.close())
		}
	}
	return s, nil
}

// runnable is the absolute path of a file that can be run.
func runnable(binary string) (string, error) {
	path, err := filepath.Abs(binary)
	if err != nil {
		return "", fmt.Errorf("find the plugin: %w", err)
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return "", fmt.Errorf("find the plugin: %w", err)
	case !info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0:
		return "", fmt.Errorf("%s cannot be run: it is not an executable file", binary)
	}
	return path, nil
}

// cases are all cases of the plugin's kind, in the order in which they say most.
func (s *suite) cases() []testcase {
	all := append(byHand(), hosted()...)
	switch s.kind {
	case plugins.KindReviewer:
		all = append(all, reviews()...)
	case plugins.KindArbiter:
		all = append(all, decisions()...)
	case plugins.KindProvider:
		all = append(all, driving()...)
	case plugins.KindModel:
		all = append(all, turns()...)
	}
	return append(all, endurance()...)
}

// try runs a case and keeps its result.
func (s *suite) try(ctx context.Context, c testcase) {
	r := Result{Name: c.name, Demand: c.demand, Status: Passed}
	err := c.run(ctx, s)
	if reason := (*skip)(nil); errors.As(err, &reason) {
		r.Status, r.Detail = Skipped, reason.reason
	} else if err != nil {
		r.Status, r.Detail = Failed, err.Error()
	}
	if errors.Is(err, pluginerr.ErrGone) {
		s.restart() // the cases after this one are about something else
	}
	if ctx.Err() != nil {
		return // the case was not tried to its end
	}
	s.results = append(s.results, r)
	if s.options.Report != nil {
		s.options.Report(r)
	}
}

// restart lets the next call start the plugin anew.
func (s *suite) restart() {
	if s.hosted != nil {
		s.hosted.Close()
		s.hosted = nil
	}
	endMarked(s.home.mark())
	s.home.sweep()
}

func (s *suite) close() error {
	s.restart()
	return s.home.close()
}
