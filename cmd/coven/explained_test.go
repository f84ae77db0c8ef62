package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/coven-run/coven/internal/event"
)

// cmdExplained implements explained FILE: the lines of the file must be all states of a session, as coven
// why prints them.
func cmdExplained(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 1, "explained FILE")
	text, err := os.ReadFile(ts.MkAbs(args[0]))
	ts.Check(err)
	seen := strings.Split(string(text), "\n")
	for _, state := range sessionStates(ts) {
		if !slices.Contains(seen, state) {
			ts.Fatalf("no row explains the state %q; there are %q", state, seen)
		}
	}
}

// sessionStates returns the states that packages event and session declare.
func sessionStates(ts *testscript.TestScript) []string {
	var states []string
	for _, dir := range []string{"event", "session"} {
		files, err := filepath.Glob(filepath.Join("..", "..", "internal", dir, "*.go"))
		ts.Check(err)
		for _, file := range files {
			parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
			ts.Check(err)
			ast.Inspect(parsed, func(n ast.Node) bool {
				if spec, ok := n.(*ast.ValueSpec); ok {
					states = append(states, stateOf(spec)...)
				}
				return true
			})
		}
	}
	if len(states) < 10 {
		ts.Fatalf("found only %q", states)
	}
	return states
}

// stateOf returns the state that a constant declares, if it declares one.
func stateOf(spec *ast.ValueSpec) []string {
	if spec.Type == nil || len(spec.Values) == 0 {
		return nil
	}
	literal, ok := spec.Values[0].(*ast.BasicLit)
	if !ok {
		return nil
	}
	text, err := strconv.Unquote(literal.Value)
	name := ""
	switch typed := spec.Type.(type) {
	case *ast.Ident:
		name = typed.Name
	case *ast.SelectorExpr:
		name = typed.Sel.Name
	}
	switch {
	case err != nil || name == "Status" && text == "waiting":
		return nil
	case name == "Status" && text == string(event.StatusPartial): // only subagents have it
		return nil
	case name == "Status":
		return []string{text}
	case name == "WaitReason":
		return []string{"waiting (" + text + ")"}
	}
	return nil
}
