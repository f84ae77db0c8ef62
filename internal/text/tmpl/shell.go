package tmpl

import "strings"

// A quoted value is safe only in certain places of a shell command. shellState is the state of a
// scanner for the text of a command that knows just enough of the shell's syntax to find these places. If it
// cannot follow the syntax with certainty, it gives up (unclear), and no value is allowed
// after that.

// Constructs that can be open. They are bytes, so that states can be compared.
const (
	subshell     = '('
	substitution = '$' // $(...)
	single       = '\''
	double       = '"'
	ansi         = 'a' // $'...'
	backquote    = '`'
	parameter    = '{' // ${...}
	arithmetic   = '+' // each open parenthesis of $((...))
	remark       = '#'
)

// before describes the position before the next character.
type before int

const (
	boundary before = iota // a word may begin here
	word                   // inside or after a word
	either                 // depends on the branches of the template
)

type shellState struct {
	open    string // open constructs, innermost last
	unclear string // the construct at which the scanner gave up
	before  before
	letters string // the unquoted word so far, or the end of a long one after a ?
	escaped bool   // after a backslash
	dollar  bool   // after a $
	less    bool   // after a <
	fresh   bool   // after $(
	opened  bool   // after a ( that opens a subshell
}

func (s shellState) mode() byte {
	if s.open == "" {
		return subshell
	}
	return s.open[len(s.open)-1]
}

// maxOpen limits the open constructs, because each state has a copy of the list.
const maxOpen = 1000

func (s shellState) push(c byte) shellState {
	if len(s.open) == maxOpen {
		return s.giveUp("its nesting")
	}
	s.open += string(c)
	return s
}

// letter adds a character to the word.
func (s shellState) letter(c byte) shellState {
	if len(s.letters) > len("case") {
		s.letters = "?"
	}
	s.letters += string(c)
	return s
}

func (s shellState) pop(b before) shellState {
	s.open = s.open[:len(s.open)-1]
	s.before = b
	return s
}

func (s shellState) giveUp(at string) shellState {
	if s.unclear == "" {
		s.unclear = at
	}
	return s
}

// text scans a text.
func (s shellState) text(text []byte) shellState {
	for _, c := range text {
		if s.unclear != "" {
			return s
		}
		s = s.next(c)
	}
	return s
}

func (s shellState) next(c byte) shellState {
	switch s.mode() {
	case single:
		if c == '\'' {
			return s.pop(word)
		}
	case remark:
		if c == '\n' {
			return s.pop(boundary)
		}
	case ansi:
		return s.nextANSI(c)
	case double:
		return s.nextDouble(c)
	case backquote:
		return s.nextUntil(c, '`', "\\'\"#\n", "backquotes")
	case parameter:
		return s.nextUntil(c, '}', "'\"\\$`{(\n", "${...}")
	case arithmetic:
		return s.nextArithmetic(c)
	default:
		return s.nextPlain(c)
	}
	return s
}

// nextANSI scans $'...', in which \' is a quote in some shells and ends the text in
// others.
func (s shellState) nextANSI(c byte) shellState {
	switch {
	case s.escaped && c == '\'':
		return s.giveUp(`\' in $'...'`)
	case s.escaped:
		s.escaped = false
	case c == '\\':
		s.escaped = true
	case c == '\'':
		return s.pop(word)
	}
	return s
}

func (s shellState) nextUntil(c, end byte, unsure, what string) shellState {
	switch {
	case c == end:
		return s.pop(word)
	case strings.IndexByte(unsure, c) >= 0:
		return s.giveUp(what)
	}
	return s
}

func (s shellState) nextArithmetic(c byte) shellState {
	switch {
	case c == '(':
		return s.push(arithmetic)
	case c == ')':
		return s.pop(word)
	case strings.IndexByte("'\"\\`{}[]#;\n", c) >= 0:
		return s.giveUp("$((...))")
	}
	return s
}

func (s shellState) nextDouble(c byte) shellState {
	if c == '\\' && !s.escaped {
		s.escaped = true
		return s
	}
	if s.escaped && c == '\n' { // a line continuation
		s.escaped = false
		return s
	}
	dollar, escaped := s.dollar, s.escaped
	s.dollar, s.escaped = false, false
	switch {
	case escaped:
	case c == '"':
		return s.pop(word)
	case c == '`':
		return s.push(backquote)
	case c == '$':
		s.dollar = !dollar
	case dollar:
		return s.expansion(c)
	}
	return s
}

// expansion scans the character after a $.
func (s shellState) expansion(c byte) shellState {
	switch c {
	case '(':
		s = s.push(substitution)
		s.before, s.letters, s.fresh = boundary, "", true
	case '{':
		return s.push(parameter)
	case '[':
		return s.giveUp("$[...]")
	}
	return s
}

func (s shellState) nextPlain(c byte) shellState {
	if c == '\\' && !s.escaped {
		s.escaped = true
		return s
	}
	if s.escaped && c == '\n' { // a line continuation
		s.escaped = false
		return s
	}
	dollar, less, fresh, escaped, opened := s.dollar, s.less, s.fresh, s.escaped, s.opened
	s.dollar, s.less, s.fresh, s.escaped, s.opened = false, false, false, false, false
	if escaped {
		s.before = word
		return s.letter('?')
	}
	switch c {
	case '\'', '"', '`':
		return s.quote(c, dollar)
	case '(':
		return s.parenthesis(dollar, fresh, opened)
	case ' ', '\t', '\n', ';', '&', '|', '<', '>', ')':
		return s.separator(c, less)
	case '#':
		return s.hash()
	case '$':
		s.dollar = !dollar
	}
	s.before = word
	s = s.letter(c)
	if dollar {
		return s.expansion(c)
	}
	return s
}

func (s shellState) quote(c byte, dollar bool) shellState {
	s = s.letter('?')
	if c == '\'' && dollar {
		return s.push(ansi)
	}
	return s.push(c)
}

func (s shellState) parenthesis(dollar, fresh, opened bool) shellState {
	switch {
	case dollar:
		return s.expansion('(')
	case fresh:
		s.open = s.open[:len(s.open)-1]
		return s.push(arithmetic).push(arithmetic)
	case opened:
		return s.giveUp("((")
	case strings.HasSuffix(s.letters, "="):
		return s.giveUp("=(")
	}
	s = s.push(subshell)
	s.before, s.letters, s.opened = boundary, "", true
	return s
}

// separator scans a character that ends a word. In the patterns of case, a closing parenthesis
// has no opening one, so the end of $(...) would be ambiguous.
func (s shellState) separator(c byte, less bool) shellState {
	if s.letters == "case" && strings.IndexByte(s.open, substitution) >= 0 {
		return s.giveUp("case in $(...)")
	}
	wasSubstitution := s.open != "" && s.mode() == substitution
	s.before, s.letters = boundary, ""
	switch {
	case c == '<' && less:
		return s.giveUp("a here-document")
	case c == '<':
		s.less = true
	case c == ')' && wasSubstitution:
		s.letters = "?"
		return s.pop(word)
	case c == ')' && s.open != "":
		return s.pop(boundary)
	}
	return s
}

func (s shellState) hash() shellState {
	switch s.before {
	case either:
		return s.giveUp("a # after an optional part")
	case boundary:
		return s.push(remark)
	}
	return s.letter('#')
}
