package shellword

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Max limits the bytes of a shell command that Parse and Words read: Linux starts no program with a
// longer argument.
const Max = 128 << 10

// Limits of the nesting of a shell command. The parser is recursive, and a Go program whose stack overflows
// ends.
const (
	maxFrames = 5000 // of the parser's stack
	maxNodes  = 5000 // between the top of the syntax tree and its leaves
	chunk     = 256  // bytes that the parser may read before its stack is measured again
)

var errNested = errors.New("it is nested too deeply")

// Parse parses a shell command of an agent.
func Parse(command string) (*syntax.File, error) {
	if len(command) > Max {
		return nil, fmt.Errorf("it has more than %d bytes", Max)
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(&shallow{strings.NewReader(command)}, "")
	if err != nil {
		return nil, err
	}
	return file, checkDepth(file)
}

// Words parses the words of a command line. With an error, it returns the words before it.
func Words(line string) ([]*syntax.Word, error) {
	if len(line) > Max {
		return nil, fmt.Errorf("it has more than %d bytes", Max)
	}
	var all []*syntax.Word
	for w, err := range syntax.NewParser().WordsSeq(&shallow{strings.NewReader(line)}) {
		if err == nil {
			err = checkDepth(w)
		}
		if err != nil {
			return all, err
		}
		all = append(all, w)
	}
	return all, nil
}

// shallow is a reader that fails when the stack of its caller is too deep.
type shallow struct{ from io.Reader }

// Read implements io.Reader.
func (s *shallow) Read(to []byte) (int, error) {
	if runtime.Callers(maxFrames, make([]uintptr, 1)) > 0 {
		return 0, errNested
	}
	return s.from.Read(to[:min(len(to), chunk)])
}

// checkDepth returns an error if a node has too many ancestors. The parser builds lists such as a && b && c
// without recursion, but those who walk the tree are recursive.
func checkDepth(n syntax.Node) error {
	var err error
	depth := 0
	syntax.Walk(n, func(n syntax.Node) bool {
		switch {
		case n == nil:
			depth--
			return true
		case depth >= maxNodes || err != nil:
			err = errNested
			return false
		}
		depth++
		return true
	})
	return err
}
