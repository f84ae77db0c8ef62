// Command testrun runs go test and makes its result readable: one line per package, the output of
// failed tests only, and the slowest tests at the end. make test and CI use it.
//
// With -again N, a failed test is run N times again, alone. If it passes each time, testrun reports it
// as unsteady and continues. A second unsteady test in the same CI run is a failure.
//
//	testrun [-again N] [-slowest N] [-record FILE] -- [FLAGS OF GO TEST] PACKAGE...
//
// All flags of go test must have the form -flag=value, because every other argument is a package.
//
// Nothing is repeated if a package does not build, if its process ended before all its tests had
// run, or if the race detector found a race.
//
// Exit status: 0 if all tests pass or one is unsteady; 1 if a test fails or if no test matches -run; 2 if
// testrun could not run them.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
)

func main() {
	r := run{out: printer{os.Stdout}, err: printer{os.Stderr}}
	flag.IntVar(&r.again, "again", 0, "run a failed test `N` times more, alone, to see if it is unsteady")
	flag.IntVar(&r.slowest, "slowest", 0, "print the `N` slowest tests")
	flag.BoolVar(&r.verbose, "output", false, "print the output of tests that pass, too")
	flag.StringVar(&r.record, "record", "", "append the names of unsteady tests to this `FILE`, which all steps of a CI run share")
	flag.Parse()
	for _, arg := range flag.Args() {
		if strings.HasPrefix(arg, "-") {
			r.flags = append(r.flags, arg)
		} else {
			r.packages = append(r.packages, arg)
		}
	}
	os.Exit(r.run(context.Background()))
}

// run is one invocation of testrun.
type run struct {
	again, slowest  int
	verbose         bool
	record          string
	flags, packages []string // of go test
	out, err        printer
}

// printer writes output for people. It ignores errors.
type printer struct{ io.Writer }

func (p printer) print(format string, args ...any) { _, _ = fmt.Fprintf(p, format, args...) }

func (r *run) run(ctx context.Context) int {
	report := newReport(r.out)
	report.verbose = r.verbose
	err := r.test(ctx, report, append(r.flags, r.packages...)...)
	report.printSlowest(r.slowest)
	if err == nil && len(report.failed) == 0 {
		return r.anyRan(report)
	}
	if failed, is := errors.AsType[*exec.ExitError](err); err != nil && (!is || failed.ExitCode() != 1) {
		r.err.print("testrun: %v\n", err)
		return 2
	}
	if r.again == 0 || report.broken || len(report.failed) == 0 {
		return 1
	}
	return r.repeat(ctx, report.failed)
}

// anyRan returns the exit status of a run without failures. It is 1 if no test matches -run.
func (r *run) anyRan(report *report) int {
	isPattern := func(flag string) bool { return strings.HasPrefix(flag, "-run=") && flag != "-run=^$" }
	if len(report.times) > 0 || !slices.ContainsFunc(r.flags, isPattern) {
		return 0
	}
	r.err.print("testrun: no test matches %s\n", strings.Join(r.flags, " "))
	return 1
}

// test runs go test and reports its events. It returns an *exec.ExitError if a test fails.
func (r *run) test(ctx context.Context, report *report, args ...string) error {
	cmd := exec.CommandContext(ctx, "go", append([]string{"test", "-json"}, args...)...)
	cmd.Stderr = r.err
	events, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	return errors.Join(report.read(events), cmd.Wait())
}

// repeat runs each failed test again, alone.
func (r *run) repeat(ctx context.Context, failed []name) int {
	code := 0
	for _, test := range failed {
		r.out.print("\nagain, alone, %d times: %s\n", r.again, test)
		args := append(slices.Clone(r.flags), "-count=1", "-run="+test.pattern(), test.pkg)
		passed := 0
		for passed < r.again && r.passes(ctx, test, args) {
			passed++
		}
		if passed < r.again {
			r.out.print("fails: %s (2 of %d)\n", test, passed+2)
			code = 1
			continue
		}
		n, err := r.remember(fmt.Sprintf("unsteady: %s (1 of %d)", test, r.again+1))
		if err != nil {
			r.err.print("testrun: %v\n", err)
			return 2
		}
		if n > 1 {
			r.out.print("a second unsteady test is a failure\n")
			code = 1
		}
	}
	return code
}

// passes runs a test. A test that is skipped, or that does not exist without other tests, does not pass.
func (r *run) passes(ctx context.Context, test name, args []string) bool {
	report := newReport(r.out)
	return r.test(ctx, report, args...) == nil && report.passed[test]
}

// remember prints a line about an unsteady test, appends it to the record, and returns the number of
// lines in the record.
func (r *run) remember(line string) (int, error) {
	r.out.print("%s\n", line)
	if r.record == "" {
		r.record = os.DevNull
	}
	file, err := os.OpenFile(r.record, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return 0, err
	}
	_, err = fmt.Fprintln(file, line)
	if err = errors.Join(err, file.Close()); err != nil {
		return 0, err
	}
	all, err := os.ReadFile(r.record)
	return strings.Count(string(all), "\n"), err
}
