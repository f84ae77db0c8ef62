package secret

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// escapeAs encodes a text as JSON, with a random escape for each character.
func escapeAs(t *rapid.T, text string) string {
	var b strings.Builder
	for _, r := range text {
		switch way := rapid.IntRange(0, 3).Draw(t, "way"); {
		case way == 0 && r < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, r)
		case way == 1 && r < 0x10000:
			fmt.Fprintf(&b, `\u%04X`, r)
		case r == '/' && way == 2:
			b.WriteString(`\/`)
		default:
			quoted, err := json.Marshal(string(r))
			if err != nil {
				t.Fatal(err)
			}
			b.WriteString(strings.Trim(string(quoted[1:len(quoted)-1]), ""))
		}
	}
	return b.String()
}

// A secret is masked after any number of JSON escapes and any splitting of the text; the
// text around it is unchanged.
func TestEscapedSecrets(t *testing.T) {
	secrets := []string{`pa"ss/w\ord+1`, "hunter2hunter3", "épée\tné 🦉x", "AKIA/IOSFODNN7EXAMPLE+"}
	s, err := store(t, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, value := range secrets {
		s.hide(value)
	}
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.SampledFrom(secrets).Draw(t, "secret")
		text := value
		for range rapid.IntRange(0, 3).Draw(t, "depth") {
			text = escapeAs(t, text)
		}
		text = "before " + text + " after"
		if got := s.Text(text); got != "before *** after" {
			t.Fatalf("%q became %q", text, got)
		}
		raw, err := json.Marshal(map[string]any{"data": []string{text}})
		if err != nil {
			t.Fatal(err)
		}
		if got := string(s.JSON(raw)); got != `{"data":["before *** after"]}` {
			t.Fatalf("%s became %s", raw, got)
		}
		out := &buffer{}
		w := s.Writer(out)
		for rest := text + "\n"; rest != ""; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "n")
			if _, err := w.Write([]byte(rest[:n])); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		if err := w.Close(); err != nil || out.String() != "before *** after\n" {
			t.Fatalf("%q became %q, %v", text, out.String(), err)
		}
	})
}

// A line without an end is passed on before it fills the memory, and a secret across
// the cut is still masked.
func TestLongOpenLine(t *testing.T) {
	s, err := store(t, "key: hunter2hunter3\n", nil)
	if err != nil {
		t.Fatal(err)
	}
	const escaped = `\u0068unter2\u0068unter3`
	out := &buffer{}
	w := s.Writer(out)
	text := strings.Repeat(`\\`+strings.Repeat("x", 900)+escaped, 3000)
	for _, part := range slices.Collect(slices.Chunk([]byte(text), 4096)) {
		if _, err := w.Write(part); err != nil {
			t.Fatal(err)
		}
	}
	if out.Len() == 0 {
		t.Error("nothing was handed on")
	}
	if err := w.Close(); err != nil || strings.Contains(out.String(), "unter3") || strings.Count(out.String(), "***") != 3000 {
		t.Errorf("%v, %d hidden", err, strings.Count(out.String(), "***"))
	}
}

// Values of a process's environment are hidden unless they reveal nothing.
func TestHideEnv(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "a-file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := store(t, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	short := s.HideEnv([]string{
		"NPM_TOKEN=npm_0123456789", "GH_TOKEN=abc", "MODE=production", "LEVEL=1.2.3", "DIR=" + file, "AUTH_FILE=" + file,
		"URL=https://example.invalid/x", "DSN=postgres://me:s3cretpw@db.invalid/x", "CUSTOM=a1b2-c3d4-e5f6",
		"PASSWORD=production", "HTTPS_PROXY=http://u:proxypw@proxy.invalid", "NOT_NAMED_KEY=left-alone-by-us", "EMPTY_KEY=",
	}, func(name string) bool { return !strings.HasPrefix(name, "NOT_") && name != "HTTPS_PROXY" })
	if fmt.Sprint(short) != "[GH_TOKEN]" {
		t.Errorf("too short: %v", short)
	}
	for text, want := range map[string]string{
		"npm_0123456789": "***", "1.2.3": "1.2.3", file: file, "https://example.invalid/x": "https://example.invalid/x",
		"s3cretpw": "***", "a1b2-c3d4-e5f6": "***", "in production": "in ***", "proxypw": "***", "left-alone-by-us": "left-alone-by-us", "abc": "abc",
	} {
		if got := s.Text(text); got != want {
			t.Errorf("%s: %s", text, got)
		}
	}
}

// No part of a secret remains where an overlong line is cut, regardless of its escapes.
func TestCutLine(t *testing.T) {
	s, err := store(t, "key: sec\\ret/1\n", nil)
	if err != nil {
		t.Fatal(err)
	}
	forms := []string{`sec\\ret\/1`, `\u0073ec\u005cret/1`, `\\u0073\\u0065c\\\\ret/1`}
	rapid.Check(t, func(t *rapid.T) {
		out := &buffer{}
		w := s.Writer(out)
		filler := rapid.SampledFrom([]string{"x", `\\`, `\u0078`, `\\\\`}).Draw(t, "filler")
		text := strings.Repeat(filler, maxOpenLine/len(filler)-rapid.IntRange(0, 300).Draw(t, "before"))
		text += `\n` + strings.Join(rapid.SliceOfN(rapid.SampledFrom(forms), 10, 30).Draw(t, "secrets"), "")
		for rest := text; rest != ""; {
			n := min(rapid.IntRange(1, 1<<17).Draw(t, "n"), len(rest))
			if len(rest) < 2000 {
				n = min(n%7+1, len(rest))
			}
			if _, err := w.Write([]byte(rest[:n])); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if got := out.String(); s.unescaped(got) != got || strings.Contains(got, "ret") {
			t.Fatalf("%q", got[max(len(got)-2000, 0):])
		}
	})
}
