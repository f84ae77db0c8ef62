package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"io"
	"regexp"
	"slices"
	"strings"
)

// name identifies a test, or a whole package if test is empty.
type name struct{ pkg, test string }

func (n name) String() string { return strings.TrimSuffix(n.pkg+" "+n.test, " ") }

// pattern returns the value of -run that matches only the test.
func (n name) pattern() string {
	parts := strings.Split(n.test, "/")
	for i, part := range parts {
		parts[i] = "^" + regexp.QuoteMeta(part) + "$"
	}
	return strings.Join(parts, "/")
}

// event is a line of go test -json: see go doc test2json.
type event struct {
	Action  string
	Package string
	Test    string
	Elapsed float64 // seconds
	Output  string
}

// report collects the events of go test.
type report struct {
	out     printer
	verbose bool                      // print the output of tests that pass
	output  map[name]*strings.Builder // of tests and packages that have not ended
	parent  map[name]bool             // tests with a failed subtest
	failed  []name                    // tests without a failed subtest
	passed  map[name]bool             // tests
	whole   map[string]bool           // packages that ran all their tests
	broken  bool                      // something other than a test failed: see endPackage
	times   []timed
}

type timed struct {
	name
	seconds float64
}

func newReport(out printer) *report {
	return &report{out: out, output: map[name]*strings.Builder{}, parent: map[name]bool{}, passed: map[name]bool{}, whole: map[string]bool{}}
}

// read reads the events until EOF. It prints lines that are not events, such as
// compiler errors.
func (r *report) read(events io.Reader) error {
	lines := bufio.NewReader(events)
	for {
		line, err := lines.ReadBytes('\n')
		var e event
		if json.Unmarshal(line, &e) == nil {
			r.take(e)
		} else {
			_, _ = r.out.Write(line)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// raced is the message of package testing about a detected race. A race is always a failure, even if it is rare.
const raced = "race detected during execution of test\n"

func (r *report) take(e event) {
	at := name{e.Package, e.Test}
	switch e.Action {
	case "output":
		if r.output[at] == nil {
			r.output[at] = &strings.Builder{}
		}
		r.output[at].WriteString(e.Output)
		r.whole[at.pkg] = r.whole[at.pkg] || at.test == "" && e.Output == "FAIL\n" // a panic does not print this line
		r.broken = r.broken || strings.HasSuffix(e.Output, raced)
	case "build-output":
		r.out.print("%s", e.Output)
	case "pass", "skip", "fail":
		if e.Test == "" {
			r.endPackage(at, e)
		} else {
			r.endTest(at, e)
		}
		delete(r.output, at)
	}
}

func (r *report) endTest(at name, e event) {
	r.times = append(r.times, timed{at, e.Elapsed})
	if e.Action != "fail" {
		r.passed[at] = e.Action == "pass"
		if r.verbose {
			r.print(at)
		}
		return
	}
	for i, c := range at.test { // a subtest's name may contain a slash, too
		if c == '/' {
			r.parent[name{at.pkg, at.test[:i]}] = true
		}
	}
	if !r.parent[at] {
		r.failed = append(r.failed, at)
	}
	r.print(at)
}

// endPackage ends a package. If it failed, the reason may be other than a failed test: it does not build, or
// its process ended early, so that other tests did not run.
func (r *report) endPackage(at name, e event) {
	if e.Action == "skip" { // no test files
		return
	}
	if e.Action == "fail" {
		inTest := func(n name) bool { return n.pkg == at.pkg }
		r.broken = r.broken || !r.whole[at.pkg] || !slices.ContainsFunc(r.failed, inTest)
		for test := range r.output { // of tests that did not end
			if test.pkg == at.pkg && test.test != "" {
				r.broken = true
				r.print(test)
			}
		}
		r.print(at)
		return
	}
	r.out.print("ok    %6.1fs  %s\n", e.Elapsed, at.pkg)
}

func (r *report) print(at name) {
	if text := r.output[at]; text != nil {
		r.out.print("%s", text)
	}
}

// printSlowest prints the n slowest tests.
func (r *report) printSlowest(n int) {
	slices.SortStableFunc(r.times, func(a, b timed) int { return cmp.Compare(b.seconds, a.seconds) })
	if n = min(n, len(r.times)); n > 0 {
		r.out.print("\nthe %d slowest tests:\n", n)
	}
	for _, t := range r.times[:n] {
		r.out.print("%8.1fs  %s\n", t.seconds, t.name)
	}
}
