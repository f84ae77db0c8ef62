package secret

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/coven-run/coven/internal/config/yamldoc"
)

func store(t testing.TB, file string, env map[string]string) (*Store, error) {
	t.Helper()
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, ".coven"), 0o755); err != nil {
		t.Fatal(err)
	}
	if file != "" {
		if err := os.WriteFile(filepath.Join(root, File), []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return Open(root, func(name string) string { return env[name] })
}

func TestValue(t *testing.T) {
	s, err := store(t, "api_key: from-file\nother: 'with: colon'\n", map[string]string{"API_KEY": "from-environment", "TOKEN": "of-the-environment", "PIN": "123"})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"api_key": "from-file", "token": "of-the-environment", "other": "with: colon"} {
		if got, err := s.Value(name); err != nil || got != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	for name, want := range map[string]string{
		"nope":    "secret not found: nope (put it into .coven/secrets.yaml, or set $NOPE)",
		"api_kye": `secret not found: api_kye (did you mean "api_key"?)`,
		"pin":     "the secret pin of $PIN has fewer than 6 characters",
	} {
		if _, err := s.Value(name); err == nil || err.Error() != want {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := s.Value("nope"); !errors.As(err, new(*UnknownError)) {
		t.Errorf("%T", err)
	}
	if s, err := store(t, "", nil); err != nil || s.Text("x") != "x" {
		t.Errorf("no file: %v", err)
	}
	for file, want := range map[string]string{
		"a-b: 123456\n": `.coven/secrets.yaml:1:6: "a-b" cannot be the name of a secret`,
		"a: 123\n":      `.coven/secrets.yaml:1:4: the secret "a" has fewer than 6 characters`,
		"a: [x]\n":      `.coven/secrets.yaml:1:4: this must be text`,
	} {
		if _, err := store(t, file, nil); err == nil || !errors.As(err, new(yamldoc.Errors)) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", file, err)
		}
	}
}

func TestRedact(t *testing.T) {
	s, err := store(t, "a: pa\"ss/word+1\nkey: |\n  -----BEGIN-----\n  MIIEabcdef\n  -----END-----\n", nil)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		`it is pa"ss/word+1.`:         "it is ***.",
		`{"x":"pa\"ss/word+1"}`:       `{"x":"***"}`,
		"?p=pa%22ss%2Fword%2B1":       "?p=***",
		"only MIIEabcdef of it":       "only *** of it",
		"nothing pa\"ss/word in here": "nothing pa\"ss/word in here",
	} {
		if got := s.Text(text); got != want {
			t.Errorf("%s: %s", text, got)
		}
	}
	if got := string(s.JSON([]byte(`{"MIIEabcdef":["x MIIEabcdef",{"n":12345678901234567890}],"y":1.50}`))); got != `{"***":["x ***",{"n":12345678901234567890}],"y":1.50}` {
		t.Errorf("JSON: %s", got)
	}
}

type buffer struct {
	bytes.Buffer
	closed bool
}

func (b *buffer) Close() error { b.closed = true; return nil }

// Secrets are masked and the rest is unchanged, regardless of how a text is split into writes.
func TestWriter(t *testing.T) {
	s, err := store(t, "a: hunter2hunter3\nb: hunter2x\nc: aaaaaaab\nd: hunter2\ne: er3 other\nf: épée-né\n", nil)
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOf(rapid.SampledFrom([]string{"hunter2hunter3", "hunter2x", "hunter2", "aaaaaaab", "aaa", "épée-né", "é", "er3 ", "\n", "other ", "h"})).Draw(t, "parts")
		text := strings.Join(parts, "")
		out := &buffer{}
		w := s.Writer(out)
		for rest := text; rest != ""; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "n")
			if m, err := w.Write([]byte(rest[:n])); m != n || err != nil {
				t.Fatalf("%d, %v", m, err)
			}
			rest = rest[n:]
		}
		if err := w.Close(); err != nil || !out.closed {
			t.Fatalf("close: %v", err)
		}
		got := out.String()
		for _, value := range []string{"hunter2", "er3 other", "aaaaaaab", "épée-né"} {
			if strings.Contains(got, value) {
				t.Fatalf("%q came through in %q", value, got)
			}
		}
		if len(parts) > 0 && strings.Count(got, "\n") != strings.Count(text, "\n") {
			t.Fatalf("%q became %q", text, got)
		}
	})
	raw, err := json.Marshal(map[string]string{"x": "a\nb"})
	if err != nil || string(s.JSON(raw)) != string(raw) {
		t.Errorf("changed %s, %v", raw, err)
	}
}

// A text that was truncated, quoted twice or joined to one line reveals no part of a
// secret.
func TestTextInPieces(t *testing.T) {
	s, err := store(t, "key: sk-live-0123456789abcdef\nodd: 'two  spaces \"q\" \\ back'\n", nil)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"Bash curl -H Bearer sk-live-01234…":                        "Bash curl -H Bearer ***…",
		"Bash curl -H sk-live-01234…, then Read x: 5 times: two  …": "Bash curl -H ***…, then Read x: 5 times: two  …",
		"Bash echo two spaces \"q\" \\ back":                        "Bash echo ***",
		`{\"k\":\"two  spaces \\\"q\\\" \\\\ back\"}`:               `{\"k\":\"***\"}`,
		"sk-live- is how they begin…":                               "sk-live- is how they begin…",
	} {
		if got := s.Text(text); got != want {
			t.Errorf("%s: %s", text, got)
		}
		raw, err := json.Marshal(map[string]string{"summary": text})
		if err != nil {
			t.Fatal(err)
		}
		var got map[string]string
		if err := json.Unmarshal(s.JSON(raw), &got); err != nil || got["summary"] != want {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
}

// In a file of variables, exactly the credentials are hidden, with any quotes.
func TestHideEnvFile(t *testing.T) {
	s, err := Open(t.TempDir(), func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	s.HideEnvFile("# API_KEY=commented-out\nexport API_KEY = \"in \\ quotes\" # why\r\nTOKEN='single-quotes'\n" +
		"DB_PASSWORD=bare-value # why\nURL=postgres://me:in-the-url@host/db\nNAME=not-a-secret\nno line\nSHORT_KEY=x\nA-B_KEY=not-a-name\n=x\n")
	for text, want := range map[string]string{
		"in \\ quotes": "***", "single-quotes": "***", "bare-value # why": "*** # why", "in-the-url": "***",
		"commented-out": "commented-out", "not-a-secret": "not-a-secret", "x": "x", "not-a-name": "not-a-name",
	} {
		if got := s.Text(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}
