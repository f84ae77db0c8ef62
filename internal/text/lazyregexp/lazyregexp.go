// Package lazyregexp provides regular expressions that are compiled on first use.
// coven starts many short-lived processes of itself. Most of them use few of the expressions,
// and compiling all of them would take a third of the startup time.
package lazyregexp

import (
	"regexp"
	"sync"
)

// Regexp is a regular expression with the syntax and the methods of package regexp.
type Regexp struct {
	expr    string
	compile func() *regexp.Regexp
}

// New returns an expression. Its first use panics if it is malformed.
func New(expr string) *Regexp {
	return &Regexp{expr, sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })}
}

// String returns the source of the expression.
func (r *Regexp) String() string { return r.expr }

// Match is [regexp.Regexp.Match].
func (r *Regexp) Match(b []byte) bool { return r.compile().Match(b) }

// MatchString is [regexp.Regexp.MatchString].
func (r *Regexp) MatchString(s string) bool { return r.compile().MatchString(s) }

// FindString is [regexp.Regexp.FindString].
func (r *Regexp) FindString(s string) string { return r.compile().FindString(s) }

// FindAllString is [regexp.Regexp.FindAllString].
func (r *Regexp) FindAllString(s string, n int) []string { return r.compile().FindAllString(s, n) }

// FindSubmatch is [regexp.Regexp.FindSubmatch].
func (r *Regexp) FindSubmatch(b []byte) [][]byte { return r.compile().FindSubmatch(b) }

// FindStringSubmatch is [regexp.Regexp.FindStringSubmatch].
func (r *Regexp) FindStringSubmatch(s string) []string { return r.compile().FindStringSubmatch(s) }

// FindAllStringSubmatch is [regexp.Regexp.FindAllStringSubmatch].
func (r *Regexp) FindAllStringSubmatch(s string, n int) [][]string {
	return r.compile().FindAllStringSubmatch(s, n)
}

// ReplaceAllString is [regexp.Regexp.ReplaceAllString].
func (r *Regexp) ReplaceAllString(s, repl string) string {
	return r.compile().ReplaceAllString(s, repl)
}

// ReplaceAllStringFunc is [regexp.Regexp.ReplaceAllStringFunc].
func (r *Regexp) ReplaceAllStringFunc(s string, repl func(string) string) string {
	return r.compile().ReplaceAllStringFunc(s, repl)
}
