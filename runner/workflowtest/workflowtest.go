// Package workflowtest tests grimoires without agents, processes and worktrees: a file contains the answers
// of the steps. A test checks the path of a run through the grimoire, and the coverage lists the exits that
// no test takes.
//
// Rules. Tests run the same step tree as tasks. Prompts, commands and conditions are rendered as in a run.
// A step without an answer succeeds.
package workflowtest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/config/yamldoc"
	"github.com/coven-run/coven/runner/engine"
)

// Suite contains the tests of one grimoire.
type Suite struct {
	File  string
	Tests []Test
}

// Test tests one path through a grimoire.
type Test struct {
	Name    string
	Task    grimoires.Task
	Checks  []string
	Answers map[string][]Answer // by step; the last answer of a list repeats
	Expect  Expect
}

// Answer is the answer of a step.
type Answer struct {
	OK       bool
	Output   string
	Outputs  map[string]any
	Summary  string
	Error    string
	ExitCode int
	Files    []string // files that the step changed
	Conflict []string // for a merge: files in conflict with the target
	Wait     string   // reason to wait here
	Findings []string // errors found by a review, which fails because of them
	Continue bool     // for an arbiter: run another round
}

// Expect is the expected outcome of a test.
type Expect struct {
	Status string              // completed, blocked, failed or waiting
	Steps  []string            // paths of all steps that run, in order, without #1; nil for any
	Given  map[string][]string // by step: texts that its prompts or commands contain
}

type text = yamldoc.At[string]

type suiteKeys struct {
	Tests []testKeys `yaml:"tests" need:"true" about:"tests of the grimoire"`
}

type testKeys struct {
	Name   text                 `yaml:"name" need:"true" about:"what the test shows"`
	Task   taskKeys             `yaml:"task" about:"task of the run; t-1"`
	Checks []string             `yaml:"checks" about:"checks of the configuration; make test"`
	Steps  yamldoc.At[answers]  `yaml:"steps" about:"answers by step: one answer, or a list whose last answer repeats; a step without an answer succeeds"`
	Expect yamldoc.At[expected] `yaml:"expect" about:"how the run must go"`
}

type answers map[string]yamldoc.Node

type taskKeys struct {
	ID          string   `yaml:"id"`
	Title       string   `yaml:"title"`
	Description string   `yaml:"description"`
	Acceptance  string   `yaml:"acceptance"`
	Type        string   `yaml:"type"`
	Priority    int      `yaml:"priority"`
	Labels      []string `yaml:"labels"`
}

type answerKeys struct {
	Output   yamldoc.At[string]   `yaml:"output" about:"output of a script, or final message of an agent"`
	Outputs  yamldoc.Node         `yaml:"outputs" about:"named values from an agent"`
	Summary  string               `yaml:"summary" about:"what was done"`
	Error    string               `yaml:"error" about:"why the step fails"`
	ExitCode int                  `yaml:"exit_code" about:"exit code of a script; not 0: the step fails"`
	Files    yamldoc.At[[]string] `yaml:"files" about:"files that the step changed"`
	Conflict []string             `yaml:"conflict" about:"for a merge: files in conflict with the target"`
	Findings yamldoc.At[[]string] `yaml:"findings" about:"for a review: errors that it found; it fails"`
	Continue yamldoc.At[bool]     `yaml:"continue" about:"for an arbiter: whether to run another round; false"`
	Wait     text                 `yaml:"wait" oneof:"review|limit|budget|checkout" about:"the run waits here"`
}

type expected struct {
	Status text                    `yaml:"status" oneof:"completed|blocked|failed|waiting" about:"how the run ends; completed"`
	Steps  []string                `yaml:"steps" about:"paths of all steps that run, in order, #1 left out"`
	Given  map[string]yamldoc.Node `yaml:"given" about:"by step: texts that its prompts or commands contain"`
}

// Read reads the tests of a grimoire. The error is a yamldoc.Errors.
func Read(file string, data []byte, g *grimoires.Grimoire) (*Suite, error) {
	doc, err := yamldoc.Parse(file, data)
	if err != nil {
		return nil, err
	}
	var keys suiteKeys
	doc.Decode(&keys)
	r := &reader{doc: doc, steps: stepsOf(g)}
	s := &Suite{File: file}
	for _, k := range keys.Tests {
		s.Tests = append(s.Tests, r.test(k))
	}
	if len(s.Tests) == 0 {
		doc.Fail(doc.Root(), "there are no tests", "list at least one under tests")
	}
	return s, doc.Err()
}

// stepsOf returns the names of the steps that can have answers.
func stepsOf(g *grimoires.Grimoire) []string {
	var names []string
	for s := range g.All() {
		switch k := s.Kind.(type) {
		case *grimoires.Loop:
		case *grimoires.AgentLoop:
			names = append(names, s.Name+"/review", s.Name+"/arbiter", s.Name+"/fix")
		case *grimoires.Merge:
			names = append(names, s.Name)
			if k.Resolve {
				names = append(names, engine.ResolveStep)
			}
		default:
			names = append(names, s.Name)
		}
	}
	return names
}

type reader struct {
	doc   *yamldoc.Document
	steps []string
}

func (r *reader) test(k testKeys) Test {
	if strings.TrimSpace(k.Name.Value) == "" {
		r.doc.Fail(r.doc.Root(), "a test has no name", "")
	}
	t := Test{
		Name: k.Name.Value, Checks: k.Checks, Answers: map[string][]Answer{},
		Task: grimoires.Task{
			ID: k.Task.ID, Title: k.Task.Title, Description: k.Task.Description, Acceptance: k.Task.Acceptance,
			Type: k.Task.Type, Priority: k.Task.Priority, Labels: k.Task.Labels,
		},
	}
	if t.Task.ID == "" {
		t.Task.ID, t.Task.Title = "t-1", cmp.Or(t.Task.Title, "A task")
	}
	if t.Checks == nil {
		t.Checks = []string{"make test"}
	}
	for _, name := range slices.Sorted(maps.Keys(k.Steps.Value)) {
		if r.known(name, k.Steps.Value[name]) {
			t.Answers[name] = r.answers(k.Steps.Value[name])
		}
	}
	t.Expect = r.expect(k.Expect.Value)
	return t
}

// known reports whether the grimoire has a step with this name that can have an answer.
func (r *reader) known(name string, at yamldoc.Place) bool {
	if slices.Contains(r.steps, name) {
		return true
	}
	r.doc.Fail(at, fmt.Sprintf("the grimoire has no step %q to answer for", name), "known: "+strings.Join(r.steps, ", "))
	return false
}

// answers parses one answer or a list of them.
func (r *reader) answers(n yamldoc.Node) []Answer {
	var all []Answer
	for _, item := range r.doc.Items(n) {
		var k answerKeys
		r.doc.DecodeNode(item, &k)
		if k.Wait.Set() && k.Error != "" {
			r.doc.Fail(k.Wait, "a step cannot both wait and fail", "")
		}
		var outputs map[string]any
		r.doc.Any(k.Outputs, &outputs)
		a := Answer{
			Output: k.Output.Value, Outputs: outputs, Summary: k.Summary, Error: k.Error, ExitCode: k.ExitCode,
			Files: k.Files.Or([]string{"changed.txt"}), Conflict: k.Conflict, Wait: k.Wait.Value,
			Findings: k.Findings.Value, Continue: k.Continue.Value,
		}
		a.OK = a.Error == "" && a.ExitCode == 0 && len(a.Conflict) == 0 && len(a.Findings) == 0
		all = append(all, a)
	}
	return all
}

func (r *reader) expect(k expected) Expect {
	e := Expect{Status: k.Status.Or("completed"), Steps: k.Steps, Given: map[string][]string{}}
	for _, name := range slices.Sorted(maps.Keys(k.Given)) {
		if !r.known(name, k.Given[name]) {
			continue
		}
		for _, item := range r.doc.Items(k.Given[name]) {
			var given string
			r.doc.DecodeNode(item, &given)
			e.Given[name] = append(e.Given[name], given)
		}
	}
	return e
}
