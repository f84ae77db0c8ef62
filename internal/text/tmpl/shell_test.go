package tmpl

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mvdan.cc/sh/v3/syntax"
	"pgregory.net/rapid"
)

// sh runs a command in an empty directory with an empty PATH.
func sh(t interface{ Helper() }, shell, dir, command string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, shell, "-c", command)
	cmd.Dir, cmd.Env = dir, []string{"PATH=" + dir}
	out, err := cmd.Output()
	return string(out), err
}

func TestCommand(t *testing.T) {
	data := map[string]any{"x": "it's $(id) `id` \"q\" \\ {{.y}}\n#", "n": 3, "l": []string{"a b", "c"}, "e": "", "o": "a b"}
	for text, want := range map[string]string{
		"printf %s {{.x}}":                                                             "it's $(id) `id` \"q\" \\ {{.y}}\n#",
		"printf '<%s>' a{{.o}}b {{.e}} {{.n}}":                                         "<aa bb><><3>",
		"printf '<%s>' {{range .l}}{{.}} {{end}}end":                                   "<a b><c><end>",
		"printf '<%s>' {{.l}}":                                                         `<["a b","c"]>`,
		"printf '<%s>' {{raw .o}} {{.o | raw}}":                                        "<a><b><a><b>",
		"printf '<%s>' {{raw .o | upper}}":                                             "<A B>",
		"printf '<%s>' {{quote .o}} {{join \" \" .l}}":                                 "<a b><a b c>",
		"printf '<%s>' \"$(printf %s {{.x}})\"":                                        "<it's $(id) `id` \"q\" \\ {{.y}}\n#>",
		"printf '<%s>' \\\n  {{.o}} # it's a comment\nprintf '<%s>' {{.o}}":            "<a b><a b>",
		"if true; then printf %s {{.o}}; fi":                                           "a b",
		"printf '<%s>' '{{if .e}}a{{else}}b{{end}}' {{.o}}":                            "<b><a b>",
		"x=$((1 + (2))); printf '<%s>' $x ${x} ${#x} a#b {{.o}}":                       "<3><3><1><a#b><a b>",
		"y=`printf z`; printf '<%s>' \"a $y \\\" ' \" {{.o}}":                          "<a z \" ' ><a b>",
		"printf '<%s>' \"${x:-z}\" \"$$\" >/dev/null; printf %s {{.o}}":                "a b",
		"printf %s $'a' >/dev/null; printf %s {{.o}}":                                  "a b",
		"case a in a) printf %s {{.o}};; esac":                                         "a b",
		"(printf %s {{.o}}) && printf '<%s>' \"$(printf %s \"$(printf %s {{.o}})\")\"": "a b<a b>",
	} {
		command, err := Command("f", text, data)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got, err := sh(t, "/bin/sh", t.TempDir(), command); err != nil || got != want {
			t.Errorf("%s\n ran as %s\n got %q, %v\nwant %q", text, command, got, err, want)
		}
	}
}

func TestCommandRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"echo '{{.x}}'":              "f:1:9: a value inside quotes could break out of them (remove the quotes: coven quotes values itself)",
		"echo \"a\n {{.x}}\"":        "f:2:4: a value inside quotes could break out of them (remove the quotes: coven quotes values itself)",
		"echo $'{{.x}}'":             "inside quotes",
		"echo `echo {{.x}}`":         "inside backquotes",
		"echo {{.x}} # {{.x}}":       "inside a comment",
		"#{{.x}}":                    "inside a comment",
		"(# {{.x}}\n)":               "inside a comment",
		"echo \\{{.x}}":              "backslash before a value",
		"echo ${{.x}}":               "a $ before a value",
		"echo ${a:-{{.x}}}":          "inside an expansion",
		"echo $(( {{.x}} + 1 ))":     "inside an expansion",
		"cat <<EOF\n{{.x}}\nEOF":     "a here-document",
		"cat <<-'EOF'\nEOF\n{{.x}}":  "a here-document",
		"cat <\\\n<E\n{{.x}}\nE":     "a here-document",
		"echo $\\\n'\\'' {{.x}}'":    `\' in $'...'`,
		"echo $'\\'' {{.x}}":         `\' in $'...'`,
		"echo `echo \\`a\\`` {{.x}}": "backquotes",
		"echo ${a:-'b'} {{.x}}":      "${...}",
		"echo $[ 1 ] {{.x}}":         "$[...]",
		"echo $((\"1\")) {{.x}}":     "$((...))",
		"echo \"$(case a in a) echo \"{{.x}}\";; esac)\"": "case in $(...)",
		"x=((a) {{.x}})":                         "=(",
		"((a=1)); echo {{.x}}":                   "((",
		"echo {{if .x}}'{{end}}a":                "in the branch that opens them",
		"echo {{range .l}}'{{end}}a":             "in the branch that opens them",
		"echo {{range .l}}'{{break}}'{{end}}":    "in the branch that opens them",
		"echo {{range .l}}'{{continue}}'{{end}}": "in the branch that opens them",
		"echo a{{if .x}} {{end}}#b' {{.x}}":      "a # after an optional part",
		"echo a{{range .l}} #b{{end}}\n{{.x}}":   "close quotes and parentheses",
		"echo \\\n{{- .x}}":                      "backslash before a value",
		"echo {{.x":                              "unclosed action",
	} {
		_, err := CheckCommand("f", text)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s:\n got %v\nwant %s", text, err, want)
		}
	}
	if _, err := Command("f", "echo {{.x}}", map[string]any{"x": "a\x00b"}); err == nil || !strings.Contains(err.Error(), "NUL") {
		t.Errorf("NUL: %v", err)
	}
}

// A value of arbitrary bytes is passed as one argument.
func FuzzCommand(f *testing.F) {
	for _, v := range []string{"", "a b", "'", `\'`, "'\"'\"'", "$(id)", "`id`", "\n", "-n", "é\xff", "*", "~", "{{.x}}", "a'\\''b"} {
		f.Add(v)
	}
	f.Fuzz(func(t *testing.T, value string) {
		command, err := Command("f", "printf '<%s>' {{.x}} a{{.x}}b", map[string]any{"x": value})
		if strings.ContainsRune(value, 0) {
			if err == nil {
				t.Fatal("a NUL byte was accepted")
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		want := "<" + value + "><a" + value + "b>"
		if got, err := sh(t, "/bin/sh", t.TempDir(), command); err != nil || got != want {
			t.Fatalf("got %q, %v, want %q", got, err, want)
		}
	})
}

// fragments are the parts of generated commands. None of them, in any order,
// writes a file named pwned.
var fragments = []string{
	"'", `"`, `\`, "$", "(", ")", "$(", "$((", "))", "`", "#", "\n", " ", " ", ";", "|", "&", "<", "<<", "<<E\n", "\nE\n", "{", "}", "${", "${x:-", "$'", `\'`, "$$", "$[",
	"case a in a)", ";;", " esac", "echo ", "a", "if true; then ", " fi", "[[ a = a ]]", "((", "!", "~", "=", "x=", "*", "?",
	"{{.v}}", "{{.v}}", " {{.v}} ", "{{if .t}}", "{{else}}", "{{end}}", "{{range .l}}", "{{break}}",
}

// In no accepted command does a value break out of its word, regardless of the text
// around it.
func TestNoValueBreaksOut(t *testing.T) {
	shells := []string{"/bin/sh"}
	if bash, err := exec.LookPath("bash"); err == nil { // bash is sh on many systems
		link := filepath.Join(t.TempDir(), "sh")
		if err := os.Symlink(bash, link); err != nil {
			t.Fatal(err)
		}
		shells = append(shells, link)
	}
	values := []string{
		"';: >pwned;'", "\";: >pwned;\"", "$(: >pwned)", "`: >pwned`", "\n: >pwned\n", ");: >pwned;(", "};: >pwned;{",
		"\\';: >pwned;\\'", "'\n: >pwned\n'", "\nE\n: >pwned\n", "a\\';: >pwned;#", "))\n: >pwned;", ";;esac;: >pwned;",
	}
	dir := t.TempDir()
	ran := 0
	rapid.Check(t, func(rt *rapid.T) {
		around := rapid.SliceOfN(rapid.SampledFrom(fragments), 0, 7)
		text := strings.Join(around.Draw(rt, "before"), "") + "{{.v}}" + strings.Join(around.Draw(rt, "after"), "")
		value := rapid.SampledFrom(values).Draw(rt, "value")
		command, err := Command("f", text, map[string]any{"v": value, "t": rapid.Bool().Draw(rt, "t"), "l": []int{1, 2}})
		if err != nil {
			return
		}
		ran++
		for _, shell := range shells {
			_, err := sh(rt, shell, dir, command)
			if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
				rt.Fatalf("%s: %v", shell, err)
			}
			if _, err := os.Lstat(filepath.Join(dir, "pwned")); err == nil {
				sweep(t, filepath.Join(dir, "pwned"))
				rt.Fatalf("%s: %q\nbroke out as\n%s", shell, text, command)
			}
		}
	})
	if ran == 0 {
		t.Error("no command was accepted")
	}
	sweep(t, dir)
}

// If the scanner accepts a value, the parser of mvdan.cc/sh finds one quoted
// word, or part of one, in every shell that may be /bin/sh.
func TestParserAgrees(t *testing.T) {
	const value = "VALUE"
	parsed := 0
	rapid.Check(t, func(rt *rapid.T) {
		around := rapid.SliceOfN(rapid.SampledFrom(fragments), 0, 7)
		text := strings.Join(around.Draw(rt, "before"), "") + "{{.v}}" + strings.Join(around.Draw(rt, "after"), "")
		command, err := Command("f", text, map[string]any{"v": value, "t": rapid.Bool().Draw(rt, "t"), "l": []int{1, 2}})
		if err != nil {
			return
		}
		for _, lang := range []syntax.LangVariant{syntax.LangPOSIX, syntax.LangBash} {
			file, err := syntax.NewParser(syntax.Variant(lang), syntax.KeepComments(true)).Parse(strings.NewReader(command), "")
			if err != nil {
				continue // the shell rejects it, too
			}
			parsed++
			if got, want := quotedWords(file, value), strings.Count(command, "'"+value+"'"); got != want {
				rt.Fatalf("%v: %q\nhas %d values, of which %d are words:\n%s", lang, text, want, got, command)
			}
		}
	})
	if parsed == 0 {
		t.Error("no command was parsed")
	}
}

// quotedWords counts the occurrences of a value in single quotes that are parts of words.
func quotedWords(file *syntax.File, value string) int {
	n := 0
	syntax.Walk(file, func(node syntax.Node) bool {
		switch node := node.(type) {
		case *syntax.ParamExp, *syntax.ArithmExp, *syntax.ArithmCmd:
			return false
		case *syntax.SglQuoted:
			if node.Value == value && !node.Dollar {
				n++
			}
		}
		return true
	})
	return n
}

// sweep removes the files that commands created.
func sweep(t *testing.T, path string) {
	t.Helper()
	if err := os.RemoveAll(path); err != nil {
		t.Error(err)
	}
}
