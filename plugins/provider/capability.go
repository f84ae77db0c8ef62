package provider

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/coven-run/coven/internal/text/lazyregexp"
)

// Capability is an optional ability of an agent CLI.
type Capability string

// The capabilities.
const (
	Gated    Capability = "gated"     // all tool calls pass the gate: Command.Gated
	Resume   Capability = "resume"    // a conversation can be continued: Request.Resume
	Messages Capability = "messages"  // messages are accepted while the CLI works
	ReadOnly Capability = "read-only" // it can run without write access: Command.ReadOnly
)

// ErrDeclaration means that a program's declaration of capabilities is invalid.
var ErrDeclaration = errors.New("invalid declaration")

// AllCapabilities returns all capabilities in display order.
func AllCapabilities() []Capability { return []Capability{Gated, Resume, Messages, ReadOnly} }

// String returns a phrase for the capability that follows "can".
func (c Capability) String() string {
	switch c {
	case Gated:
		return "ask coven before each tool call"
	case Resume:
		return "continue a conversation"
	case Messages:
		return "take messages while they work"
	case ReadOnly:
		return "run read-only"
	}
	return string(c)
}

// Capabilities are the declared capabilities of a provider. Nil means that the provider has no declaration,
// like older providers.
//
// The declaration is a text in the program of the provider:
//
//	coven:capabilities(resume,read-only)
//
// Therefore coven can show it before the user trusts the program, without running it. coven rejects
// behavior of a provider that contradicts its declaration.
type Capabilities []Capability

// Has reports whether c contains a capability.
func (c Capabilities) Has(one Capability) bool { return slices.Contains(c, one) }

// Cannot returns the missing capabilities. A gated CLI changes only what coven allows, so it does not need
// ReadOnly.
func (c Capabilities) Cannot() []Capability {
	return slices.DeleteFunc(AllCapabilities(), func(one Capability) bool {
		return c.Has(one) || one == ReadOnly && c.Has(Gated)
	})
}

// String returns the text of the declaration.
func (c Capabilities) String() string {
	words := make([]string, len(c))
	for i, one := range c {
		words[i] = string(one)
	}
	return declares + strings.Join(words, ",") + ")"
}

// declares is the prefix of a declaration. It is joined at run time so that programs that contain this
// package do not contain a declaration.
var declares = strings.Join([]string{"coven", "capabilities("}, ":")

// declarationRE matches a declaration, but not itself.
var declarationRE = lazyregexp.New(`coven[:]capabilities\(([a-z, -]{0,100})\)`)

// Declare declares the capabilities of a provider in Go. The argument must be a literal:
//
//	var _ = provider.Declare("coven:capabilities(resume,read-only)")
//
// Declare panics if text is not a declaration.
func Declare(text string) Capabilities {
	var d Declaration
	_, _ = d.Write([]byte(text)) // never fails
	c, err := d.Capabilities()
	if err == nil && c == nil {
		err = fmt.Errorf("%w: %q", ErrDeclaration, text)
	}
	if err != nil {
		panic("provider.Declare: " + err.Error())
	}
	return c
}

// Declaration is a writer that finds the declaration in the program that is written to it.
type Declaration struct {
	found []string // the distinct declarations
	rest  []byte   // end of the previous write, which may contain the start of a declaration
}

// maxDeclaration is an upper bound for the length of a declaration, in bytes.
const maxDeclaration = 128

// Write searches the next part of the program. It never fails.
func (d *Declaration) Write(p []byte) (int, error) {
	text := slices.Concat(d.rest, p)
	d.search(text)
	d.rest = bytes.Clone(text[max(0, len(text)-maxDeclaration):])
	return len(p), nil
}

func (d *Declaration) search(text []byte) {
	for len(text) > 0 {
		start := bytes.Index(text, []byte(declares))
		if start < 0 {
			return
		}
		text = text[start:]
		if m := declarationRE.FindSubmatch(text[:min(len(text), maxDeclaration)]); m != nil && !slices.Contains(d.found, string(m[1])) {
			d.found = append(d.found, string(m[1]))
		}
		text = text[len(declares):]
	}
}

// Capabilities returns the declared capabilities, or nil if there is no declaration. The error is
// ErrDeclaration if the program contains different declarations or an unknown capability.
func (d *Declaration) Capabilities() (Capabilities, error) {
	switch len(d.found) {
	case 0:
		return nil, nil
	case 1:
	default:
		return nil, fmt.Errorf("%w: conflicting capabilities, (%s) and (%s)", ErrDeclaration, d.found[0], d.found[1])
	}
	c := Capabilities{}
	for word := range strings.SplitSeq(d.found[0], ",") {
		word := Capability(strings.TrimSpace(word))
		switch {
		case word == "" && strings.TrimSpace(d.found[0]) == "":
		case !slices.Contains(AllCapabilities(), word):
			return nil, fmt.Errorf("%w: unknown capability %q", ErrDeclaration, string(word))
		case !c.Has(word):
			c = append(c, word)
		}
	}
	return c, nil
}
