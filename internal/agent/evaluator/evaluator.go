// Package evaluator evaluates TypeScript files whose default export is a definition:
//
//	import { defineAgent } from "coven";
//	export default defineAgent({ id: "analyst", domain: "analysis" });
//
// The files are not trusted. They run in a child process of our own binary (Main) that has no
// environment and no descriptors except its pipes, is limited in memory and processor time, and,
// if the kernel can enforce it, cannot open files or connections. In the child, esbuild converts
// TypeScript to JavaScript, and goja runs it: only the language, without files, network, processes,
// timers, the time, or randomness. Nothing is written, and the child keeps no state.
//
// A file may import defineAgent from "coven", and files in the same directory ("./shared").
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

// Result is the result of evaluating one file.
type Result struct {
	// Document is the definition as YAML. Each value is on its line in the file or, if it
	// is computed, on the line of defineAgent or later.
	Document string `json:"document,omitempty"`
	Error    string `json:"error,omitempty"` // empty on success
	In       string `json:"in,omitempty"`    // file of the error
	Line     int    `json:"line,omitempty"`
	// NoExport means that the file has no default export, and Imports lists the files that it
	// imports; see Helper.
	NoExport bool     `json:"noExport,omitempty"`
	Imports  []string `json:"imports,omitempty"`
	// Helper means that the file is not a definition: it has no default export, and another file
	// imports it.
	Helper bool `json:"-"`
}

const (
	maxOutput = 4 << 20 // of a definition, in bytes
	// silence limits the time without output of the child. The child limits its own processor time, so
	// this matters only if that fails or the machine is stuck.
	silence = time.Minute
)

// Evaluator evaluates files in child processes. It is safe for concurrent use.
type Evaluator struct {
	// Self returns the path of a program that runs Main if its only argument is Command.
	Self func() (string, error)

	mu    sync.Mutex
	known map[[sha256.Size]byte]map[string]Result // by the hash of the files
}

// Command is the argument that starts our own binary as a child.
const Command = "evaluate"

// request is the input of a child.
type request struct {
	Files map[string]string
	Names []string // files to evaluate, in this order
}

// reply is a child's output for a file.
type reply struct {
	Name string
	Result
}

// Evaluate evaluates the files of a directory, given by name. The Result of a file that cannot be evaluated
// has an Error.
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
		if todo = todo[done:]; len(todo) > 0 { // the child has ended: continue with a new one
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
	text, _ := json.Marshal(files) // cannot fail for strings
	return sha256.Sum256(text)
}

// child evaluates the files of a request, in order, and returns the number of finished files. The error
// refers to the next one.
func (e *Evaluator) child(r request, results map[string]Result) (done int, err error) {
	self, err := e.Self()
	if err != nil {
		return 0, fmt.Errorf("cannot be evaluated: %w", err)
	}
	input, err := json.Marshal(r)
	if err != nil {
		return 0, fmt.Errorf("cannot be evaluated: %w", err)
	}
	cmd := exec.Command(self, Command) //nolint:noctx // it is killed on a timeout, and limits itself
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

// replies reads a child's output for names. It kills the child after invalid output, too
// much output, or a timeout.
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

// ending returns the reason why a child has ended early.
func ending(err error) error {
	exited, ok := err.(*exec.ExitError) //nolint:errorlint // Wait guarantees the type
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

// markHelpers marks the files that only exist to be imported.
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

// IsDefinition reports whether a file with this name is evaluated: .ts, but not
// .d.ts, which contains only types.
func IsDefinition(name string) bool {
	return strings.HasSuffix(name, ".ts") && !strings.HasSuffix(name, ".d.ts")
}
