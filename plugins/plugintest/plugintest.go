// Package plugintest tests plugins. Run is a conformance suite for the binary of a plugin in any language;
// coven plugins test uses it. Start, Services and Repo are a harness for the tests of plugin authors.
//
// Rules:
//   - The suite does not depend on the plugin's language. It starts the binary like
//     coven, uses the protocol, and observes the process, its sockets and the
//     worktree from outside.
//   - A case fails only if the contract is violated, and names the rule. A case that
//     cannot be tested is skipped, with the reason.
//   - When Run returns, no process and no file of the plugin is left.
package plugintest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/coven-run/coven/internal/text/lazyregexp"
	"github.com/coven-run/coven/plugins"
	"github.com/coven-run/coven/plugins/pluginerr"
	"github.com/coven-run/coven/plugins/provider"
)

// Status is the result of a case.
type Status string

// The statuses of a case.
const (
	Passed  Status = "passed"
	Failed  Status = "failed"
	Skipped Status = "skipped"
)

// Result is the result of a case of the suite.
type Result struct {
	Name   string `json:"name"`
	Demand string `json:"demand"` // the requirement of the contract
	Status Status `json:"status"`
	Detail string `json:"detail,omitempty"` // reason if it failed or was skipped
}

// Options configures Run and Start.
type Options struct {
	Args []string // arguments of the binary; coven passes none
	// With are the options of a reviewer or an arbiter, as under `with` in a grimoire. For a forge, they name a pull request for
	// the case that needs one, with the keys host, path and number, and api for an unusual address of the API.
	With       map[string]string
	Transcript []byte // for a provider: recorded output of its CLI, in complete lines
	// Capabilities are the capabilities of a provider. They default to those declared in the binary.
	Capabilities provider.Capabilities

	Env    []string        // additional variables for the plugin, as KEY=VALUE
	Start  plugins.Starter // starts the plugin; defaults to a plain process
	Ready  time.Duration   // time limit for the start; default 30 seconds
	Answer time.Duration   // time limit for an answer; default one minute
	End    time.Duration   // time limit for the exit and for the end of a canceled call; default 2 seconds
	Report func(Result)    // optional; receives each result immediately
}

func (o Options) ready() time.Duration { return cmp.Or(o.Ready, 30*time.Second) }

func (o Options) answer() time.Duration { return cmp.Or(o.Answer, time.Minute) }

func (o Options) end() time.Duration { return cmp.Or(o.End, 2*time.Second) }

// fileRE matches the file names of plugins.
var fileRE = lazyregexp.New(`^coven-(provider|model|reviewer|arbiter|forge)-([a-z0-9][a-z0-9-]*)$`)

// KindOf returns the kind in the file name of a plugin, coven-KIND-NAME.
func KindOf(binary string) (plugins.Kind, error) {
	m := fileRE.FindStringSubmatch(filepath.Base(binary))
	if m == nil {
		return "", fmt.Errorf("unknown plugin kind: %s is not named coven-KIND-NAME", filepath.Base(binary))
	}
	return plugins.Kind(m[1]), nil
}

// Run runs the suite for a kind against a binary. If kind is empty, it is taken from the file name. An
// error means that the suite could not run or that ctx ended first. The results contain the violations of
// the contract.
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

// Test runs the suite in a Go test. It reports failed cases as errors of the test, logs skipped cases, and
// returns the number of passed cases.
func Test(t testing.TB, binary string, kind plugins.Kind, o Options) (passed int) {
	t.Helper()
	results, err := Run(t.Context(), binary, kind, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		switch r.Status {
		case Passed:
			passed++
		case Failed:
			t.Errorf("%s: %s: %s", r.Name, r.Demand, r.Detail)
		default:
			t.Logf("%s is skipped: %s", r.Name, r.Detail)
		}
	}
	return passed
}

type testcase struct {
	name, demand string
	run          func(ctx context.Context, s *suite) error
}

// skip is the error of a case that cannot be tested.
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
	wrote   []string // files of the worktree that reviews changed
}

func newSuite(binary string, kind plugins.Kind, o Options) (*suite, error) {
	if kind == "" {
		var err error
		if kind, err = KindOf(binary); err != nil {
			return nil, err
		}
	}
	if !slices.Contains(plugins.Kinds(), kind) {
		return nil, fmt.Errorf("%q is not a plugin kind", kind)
	}
	binary, err := runnable(binary)
	if err != nil {
		return nil, err
	}
	home, err := newHome(o.Env)
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

// runnable returns the absolute path of an executable file.
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
		return "", fmt.Errorf("cannot run %s: not an executable file", binary)
	}
	return path, nil
}

// cases returns all cases of the plugin's kind, the most informative ones first.
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
	case plugins.KindForge:
		all = append(all, polls()...)
	}
	return append(all, endurance()...)
}

// try runs a case and records its result.
func (s *suite) try(ctx context.Context, c testcase) {
	r := Result{Name: c.name, Demand: c.demand, Status: Passed}
	err := c.run(ctx, s)
	if reason := (*skip)(nil); errors.As(err, &reason) {
		r.Status, r.Detail = Skipped, reason.reason
	} else if err != nil {
		r.Status, r.Detail = Failed, err.Error()
	}
	if errors.Is(err, pluginerr.ErrGone) {
		s.restart() // for the following cases
	}
	if ctx.Err() != nil {
		return // the case was interrupted
	}
	s.results = append(s.results, r)
	if s.options.Report != nil {
		s.options.Report(r)
	}
}

// restart makes the next call start the plugin again.
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
