package permission

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/coven-run/coven/internal/text/shellword"
)

// A statement is one simple command of a shell command.
type statement struct {
	text   string   // its words, separated by spaces; unknown parts are holes
	opaque string   // why it may run commands that text does not show; empty if it does not
	named  bool     // opaque does not matter to a rule that allows the command by name
	writes []string // targets of its output redirections; unknown parts are holes
	lost   bool     // its directory is unknown, because another statement may change it
}

// moves reports whether the statement may change the shell's directory.
func (s statement) moves() bool {
	name, _, _ := strings.Cut(s.text, " ")
	return strings.ContainsRune(name, hole) || slices.Contains(strings.Fields("cd pushd popd . source eval builtin command alias trap"), name)
}

// split returns all simple commands of a shell command, including those in lists, pipes,
// functions, substitutions and here-documents.
func split(command string) ([]statement, error) {
	file, err := shellword.Parse(command)
	if err != nil {
		return nil, fmt.Errorf("the shell command cannot be read: %w", err)
	}
	var all []statement
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Stmt:
			if s, ok := ofStmt(n); ok {
				all = append(all, s)
			}
		case *syntax.ParamExp, *syntax.ArithmExp, *syntax.ArithmCmd, *syntax.LetClause, *syntax.TestClause, *syntax.DeclClause, *syntax.CoprocClause, *syntax.Assign:
			if why := evaluates(n); why != "" {
				all = append(all, statement{text: string(hole), opaque: why})
			}
		}
		return true
	})
	return all, nil
}

// ofStmt returns the statement of a node. It may only have redirections.
func ofStmt(n *syntax.Stmt) (statement, bool) {
	var s statement
	for _, r := range n.Redirs {
		if target, writes := written(r); writes {
			s.writes = append(s.writes, target)
		}
	}
	call, isCall := n.Cmd.(*syntax.CallExpr)
	if !isCall || len(call.Args) == 0 {
		return s, len(s.writes) > 0
	}
	var words []string
	for _, w := range call.Args {
		words = append(words, literal(w))
	}
	s.text = strings.Join(words, " ")
	if s.opaque = opaque(words); s.opaque == "" && !plain(words) {
		s.opaque, s.named = path.Base(words[0])+" may run other commands", true
	}
	return s, true
}

// written returns the file that a redirection writes to.
func written(r *syntax.Redirect) (target string, writes bool) {
	switch r.Op {
	case syntax.RdrIn, syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc, syntax.DplIn:
		return "", false
	case syntax.DplOut:
		if target = literal(r.Word); target != "" && strings.Trim(target, "0123456789-") == "" {
			return "", false
		}
	}
	target = literal(r.Word)
	return target, target != "/dev/null"
}

// literal returns the text of a word, with holes for parts that only the shell can expand.
func literal(w *syntax.Word) string {
	if w == nil {
		return ""
	}
	var b strings.Builder
	for _, part := range w.Parts {
		switch p := part.(type) {
		case *syntax.Lit:
			b.WriteString(unquoted(p.Value))
		case *syntax.SglQuoted:
			if p.Dollar && strings.Contains(p.Value, `\`) {
				b.WriteRune(hole)
			} else {
				b.WriteString(p.Value)
			}
		case *syntax.DblQuoted:
			for _, inner := range p.Parts {
				if l, ok := inner.(*syntax.Lit); ok && !strings.Contains(l.Value, `\`) {
					b.WriteString(l.Value)
				} else {
					b.WriteRune(hole)
				}
			}
		default:
			b.WriteRune(hole)
		}
	}
	return b.String()
}

// unquoted returns the text of an unquoted part of a word.
func unquoted(raw string) string {
	if strings.ContainsAny(raw, "*?[{~") || strings.HasPrefix(raw, "=") { // it may expand to other words; = does in zsh
		return string(hole)
	}
	var b strings.Builder
	escaped := false
	for _, c := range raw {
		switch {
		case escaped:
			if escaped = false; c != '\n' {
				b.WriteRune(c)
			}
		case c == '\\':
			escaped = true
		default:
			b.WriteRune(c)
		}
	}
	return b.String()
}

// runners returns programs and builtins that run commands, scripts or programs given as
// arguments.
func runners() []string {
	return strings.Fields(`
		. alias bind builtin chroot command compgen complete coproc doas enable env eval exec fc flock
		getopts hash history ionice jobs let mapfile nice nohup nsenter parallel readarray runuser script
		setpriv setsid source ssh start-stop-daemon stdbuf strace su sudo systemd-run taskset tclsh time timeout trap
		unbuffer unshare wait watch xargs
		ash awk bash busybox csh dash ed emacs ex expect fish gawk gdb ksh lua m4 mawk mksh nawk node perl php
		pwsh python python2 python3 rbash ruby rvim sed sh tcsh vi vim yash zsh`)
}

// plainPrograms returns programs and builtins that run no others, whatever their arguments are, and change no file but
// those that they name.
func plainPrograms() []string {
	return strings.Fields(`
		: [ base32 base64 basename break cal cat cd chgrp chmod chown cksum clear cmp column comm continue cp csplit curl cut
		date dd df diff dirname dirs du echo egrep exit expand export expr factor false fgrep file fmt fold getconf grep groups
		head hexdump hostname iconv id jq join kill killall link ln local logname ls lsof md5sum mkdir mkfifo mktemp mv nl nproc
		numfmt od paste pgrep popd pr printenv printf ps pushd pwd readlink readonly realpath return rev rm rmdir seq set sha1sum
		sha224sum sha256sum sha384sum sha512sum shasum shift shuf shopt shred sleep stat strings stty sum sync tac tail tee test
		touch tr tree true truncate tsort tty type ulimit umask uname unalias unexpand uniq unlink unset uptime vmstat
		wc which who whoami xxd yes zcat zgrep`)
}

// systemDirs returns the directories of plainPrograms.
func systemDirs() []string {
	return []string{"/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin"}
}

// runs maps programs that run other commands, or write to files, only with certain arguments to the prefixes of those
// arguments.
func runs() map[string][]string {
	return map[string][]string{
		"find": {"-exec", "-ok", "-fprint", "-fls"},
		"git": {
			"-c", "--config", "--exec", "-x", "run", "foreach", "filter-branch", "config", "difftool", "mergetool", "--upload-pack", "--receive-pack",
			"-O", "--open-files", "--ext-diff", "--textconv", "--output", "-i", "--interactive", "ext::", "daemon", "send-email", "instaweb", "web--browse", "credential", "shell",
		},
		"rg":   {"--pre", "--hostname-bin"},
		"sort": {"--compress-program"},
		"tar":  {"--to-command", "--checkpoint", "-I", "--use-compress", "--rsh", "-F", "--info-script", "--new-volume"},
	}
}

// plain reports whether a statement with these words, which is not opaque, certainly runs no other commands.
func plain(words []string) bool {
	dir, name := path.Split(words[0])
	if dir != "" && !slices.Contains(systemDirs(), path.Clean(dir)) {
		return false
	}
	_, conditional := runs()[name]
	return conditional || slices.Contains(plainPrograms(), name) || slices.Contains(subscripted(), name)
}

// subscripted returns builtins that evaluate the subscript of a name.
func subscripted() []string { return []string{"printf", "read", "test", "[", "unset"} }

// opaque returns why a statement with these words may run other commands, or "".
func opaque(words []string) string {
	name := words[0]
	switch {
	case strings.ContainsRune(name, hole) || name == "":
		return "its command is not known before it runs"
	case strings.Contains(name, "/") && !strings.HasPrefix(name, "/"):
		return name + " is a program of the worktree"
	case slices.Contains(runners(), strings.TrimRight(path.Base(name), "0123456789.-")), slices.Contains(runners(), path.Base(name)):
		return path.Base(name) + " runs other commands"
	}
	if flags, ok := runs()[path.Base(name)]; ok && slices.ContainsFunc(words[1:], func(w string) bool {
		return strings.ContainsRune(w, hole) || slices.ContainsFunc(flags, func(f string) bool { return strings.HasPrefix(w, f) })
	}) {
		return path.Base(name) + " may run other commands or write to files"
	}
	if slices.Contains(subscripted(), name) {
		for _, w := range words[1:] {
			if strings.ContainsRune(w, hole) || strings.Contains(w, "[") && w != "[" {
				return name + " may compute something"
			}
		}
	}
	return ""
}

const computes = "it computes with values, which may be commands"

// evaluates returns why a node may evaluate a value as a command, or "".
func evaluates(n syntax.Node) string {
	found := false
	switch n := n.(type) {
	case *syntax.ParamExp:
		found = n.Excl || n.Index != nil || n.Slice != nil || n.Exp != nil && n.Exp.Op == syntax.OtherParamOps
	case *syntax.ArithmExp:
		found = !constant(n.X)
	case *syntax.ArithmCmd:
		found = !constant(n.X)
	case *syntax.LetClause, *syntax.CoprocClause:
		found = true
	case *syntax.DeclClause: // options such as -i and -n change the meaning of a value
		found = slices.ContainsFunc(n.Args, func(a *syntax.Assign) bool {
			return a.Naked && a.Value != nil && strings.HasPrefix(literal(a.Value), "-")
		})
	case *syntax.TestClause:
		return testEvaluates(n)
	case *syntax.Assign:
		return assignEvaluates(n)
	}
	if found {
		return computes
	}
	return ""
}

func assignEvaluates(n *syntax.Assign) string {
	if n.Name != nil && changesCommands(n.Name.Value) {
		return "it sets " + n.Name.Value
	}
	indexed := n.Array != nil && slices.ContainsFunc(n.Array.Elems, func(e *syntax.ArrayElem) bool { return e.Index != nil })
	if n.Index != nil || indexed || n.Naked && n.Name == nil && strings.ContainsAny(literal(n.Value), "[\x00") {
		return computes
	}
	return ""
}

// changesCommands reports whether a variable affects which program a command name runs.
func changesCommands(name string) bool {
	special := []string{"PATH", "ENV", "IFS", "SHELLOPTS", "PS4", "PROMPT_COMMAND"}
	prefixes := []string{"LD_", "DYLD_", "BASH", "GIT_"}
	return slices.Contains(special, name) || slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(name, p) })
}

// constant reports whether an arithmetic expression contains only numbers.
func constant(x syntax.ArithmExpr) bool {
	switch x := x.(type) {
	case *syntax.Word:
		text := literal(x)
		return text != "" && strings.Trim(text, "0123456789") == ""
	case *syntax.BinaryArithm:
		return constant(x.X) && constant(x.Y)
	case *syntax.ParenArithm:
		return constant(x.X)
	}
	return false
}

func testEvaluates(n *syntax.TestClause) string {
	why := ""
	syntax.Walk(n, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.BinaryTest:
			if slices.Contains([]syntax.BinTestOperator{syntax.TsEql, syntax.TsNeq, syntax.TsLeq, syntax.TsGeq, syntax.TsLss, syntax.TsGtr}, n.Op) {
				why = "it compares values as numbers, which may be commands"
			}
		case *syntax.UnaryTest:
			if n.Op == syntax.TsVarSet || n.Op == syntax.TsRefVar {
				why = "it looks at a variable whose name may be a command"
			}
		}
		return true
	})
	return why
}
