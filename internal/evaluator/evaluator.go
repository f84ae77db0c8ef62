// Package evaluator evaluates TypeScript files whose default export is a definition:
//
//	import { defineAgent } from "coven";
//	export default defineAgent({ id: "analyst", domain: "analysis" });
//
// The files are not trusted. They run in a child process of our own binary (Main) that has no
// environment and no descriptors but its pipes, may use little memory and processor time, and,
// where the kernel can enforce it, may open no file and no connection. In there, esbuild turns
// TypeScript into JavaScript and goja runs it: the language, without files, network, processes,
// timers, the time, or randomness. The child dies with what it was given; nothing is written.
//
// A file may import defineAgent from "coven", and files beside it ("./shared").
package evaluator

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"
)

// Result is what became of one file.
type Result struct {
	// Document is the definition as YAML. A value is on the line where the file has it, or, if it
	// is computed, on the line of defineAgent or after it.
	Document string `json:"document,omitempty"`
	Error    string `json:"error,omitempty"` // what is wrong; empty: nothing
	In       string `json:"in,omitempty"`    // the file that the error is in
	Line     int    `json:"line,omitempty"`
	// NoExport means that the file has no default export, and Imports are the files that it
	// imports: see Helper.
	NoExport bool     `json:"noExport,omitempty"`
	Imports  []string `json:"imports,omitempty"`
	// Helper means that the file is no definition: it has no default export, and another file
	// imports it.
	Helper bool `json:"-"`
}

const (
	maxOutput = 4 << 20 // of a definition, in bytes
	// silence is how long the child may say nothing. It limits itself by its processor time, so
	// this counts only if it cannot, or if the machine does nothing.
	silence = time.Minute
)

// Evaluator evaluates files in child processes. It is safe for concurrent use.
type Evaluator struct {
	// Self returns the path of a program that runs Main if its only argument is Command.
	Self func() (string, error)

	mu    sync.Mutex
	known map[[sha256.Size]byte]map[string]Result // by the hash of the files
}

// Command is the argument that makes our own binary a child.
const Command = "evaluate"

// request is what a child is given.
type request struct {
	Files map[string]string
	Names []string // to be evaluated, in this order
}

// reply is what a child says about a file.
type reply struct {
	Name string
	Result
}

// Evaluate evaluates the files of a directory, by name. What cannot be evaluated has a Result
// with an Error.
func (e *Evaluator) Evaluate(files map[string]string) map[string]Result {
	if len(files) == 0 {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	hash := hashOf(files)
	if results, ok := e.known[hash]; ok {
		return results
	}
	results := map[string]Result{}
	for todo := slices.Sorted(maps.Keys(files)); len(todo) > 0; {
		done, err := e.child(request{files, todo}, results)
		if todo = todo[done:]; len(todo) > 0 { // the child ended: the next one goes on
			results[todo[0]] = Result{Error: err.Error(), In: todo[0], Line: 1}
			todo = todo[1:]
		}
	}
	markHelpers(results)
	if e.known == nil {
		e.known = map[[sha256.Size]byte]map[string]Result{}
	}
	e.known[hash] = results
	return results
}

func hashOf(files map[string]string) [sha256.Size]byte {
	text, _ := json.Marshal(files) // texts can be
	return sha256.Sum256(text)
}

// child evaluates the files of a request, in order, and returns how many it finished. The error
// is about the next one.
func (e *Evaluator) child(r request, results map[string]Result) (done int, err error) {
	self, err := e.Self()
	if err != nil {
		return 0, fmt.Errorf("cannot be evaluated: %w", err)
	}
	input, err := json.Marshal(r)
	if err != nil {
		return 0, fmt.Errorf("cannot be evaluated: %w", err)
	}
	cmd := exec.Command(self, Command) //nolint:noctx // it is killed when it says nothing, and limits itself
	cmd.Env = []string{"GOMAXPROCS=2"}
	cmd.Dir = "/"
	cmd.Stdin = bytes.NewReader(input)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, fmt.Errorf("cannot be evaluated: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("cannot be evaluated: %w", err)
	}
	done = replies(out, r.Names, results, func() { _ = cmd.Process.Kill() }) // it may have ended
	return done, ending(cmd.Wait())
}

// replies reads what a child says about names, and kills it when it says something else, too
// much, or nothing for too long.
func replies(out io.Reader, names []string, results map[string]Result, kill func()) (done int) {
	defer kill()
	late := time.AfterFunc(silence, kill)
	defer late.Stop()
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 2*maxOutput)
	for done < len(names) && lines.Scan() {
		late.Reset(silence)
		var r reply
		if json.Unmarshal(lines.Bytes(), &r) != nil || r.Name != names[done] {
			break
		}
		results[r.Name] = r.Result
		done++
	}
	return done
}

// ending returns why a child evaluated no more.
func ending(err error) error {
	exited, ok := err.(*exec.ExitError) //nolint:errorlint // Wait says so
	switch {
	case ok && exited.ExitCode() == exitTime:
		return fmt.Errorf("takes more than %v of processor time", maxTime)
	case ok && exited.ExitCode() == exitMemory:
		return fmt.Errorf("needs more than %d MB of memory", maxMemory>>20)
	case ok && exited.ExitCode() == exitBroken:
		return fmt.Errorf("cannot be evaluated: its process cannot be limited")
	}
	return fmt.Errorf("ended the process that evaluates it (by more than %d MB of memory, or a value that is too deep)", maxMemory>>20)
}

// markHelpers finds the files that are there to be imported.
func markHelpers(results map[string]Result) {
	imported := map[string]bool{}
	for name, r := range results {
		for _, other := range r.Imports {
			imported[other] = other != name
		}
	}
	for name, r := range results {
		if r.NoExport && imported[name] {
			results[name] = Result{Helper: true}
		}
	}
}

// IsDefinition reports whether a file of a directory is evaluated, by its name: .ts, but not
// .d.ts, which has only types.
func IsDefinition(name string) bool {
	return strings.HasSuffix(name, ".ts") && !strings.HasSuffix(name, ".d.ts")
}
