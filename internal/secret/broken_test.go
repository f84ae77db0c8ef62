package secret

import (
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// A secret is masked although a program or a terminal has broken it, in a text, in JSON and in a stream. The text around
// it, and the number of lines, are unchanged.
func TestBrokenSecrets(t *testing.T) {
	secrets := []string{"hunter2hunter3", "AKIAIOSFODNN7EXAMPLE/wJalrXUtnFEMI+K7MDENG==", "p-ass_word-1"}
	s, err := store(t, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, value := range secrets {
		s.hide(value)
	}
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.SampledFrom(secrets).Draw(t, "secret")
		before := rapid.SampledFrom([]string{"before ", strings.Repeat("x", 60) + " "}).Draw(t, "before")
		broken, lines := value, 0
		for range rapid.IntRange(1, 3).Draw(t, "breaks") {
			with := rapid.SampledFrom([]string{"\n", "\r\n", "\x1b[1;31m", "\x1b[K", "\x1b[0m\r\n\x1b[31m", "\x1b]8;;x\x07", "\x1b]0;t\x1b\\", "\x1b(B"}).Draw(t, "with")
			at := rapid.IntRange(3, len(value)-1).Draw(t, "at")
			if len(before) > 40 && strings.IndexByte(broken[:3], 0x1b) < 0 {
				at = rapid.IntRange(1, len(value)-1).Draw(t, "at")
			}
			if i := strings.IndexAny(broken, "\r\n\x1b"); i >= 0 {
				at = rapid.IntRange(min(3, i), i).Draw(t, "at")
			}
			broken = broken[:at] + with + broken[at:]
			lines += strings.Count(with, "\n")
		}
		text, want := before+broken+" after\n", before+"***"+strings.Repeat("\n", lines)+" after\n"
		if got := s.Text(text); got != want {
			t.Fatalf("%q became %q", text, got)
		}
		raw, err := json.Marshal(map[string]any{"data": []string{text}})
		if err != nil {
			t.Fatal(err)
		}
		var got map[string][]string
		if err := json.Unmarshal(s.JSON(raw), &got); err != nil || got["data"][0] != want {
			t.Fatalf("%s became %q", raw, got)
		}
		if got := s.Text(string(raw)); strings.Contains(got, value[len(value)-3:]) {
			t.Fatalf("%s became %s", raw, got)
		}
		out := &buffer{}
		w := s.Writer(out)
		for rest := text; rest != ""; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "n")
			if _, err := w.Write([]byte(rest[:n])); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		if err := w.Close(); err != nil || out.String() != want {
			t.Fatalf("%q became %q, %v", text, out.String(), err)
		}
	})
}

// Text that only resembles a broken secret does not change, nor does the order of the members.
func TestNotBroken(t *testing.T) {
	s, err := store(t, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	s.hide("123456")
	s.hide("hunter2")
	for _, text := range []string{"1\n2\n3\n4\n5\n6\n", "hunt\n er2", "\x1b[31mhunt\x1b[m\n", "hun\r\nter\r\n3"} {
		if got := s.Text(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
	const raw = `{"z":"a\n\u001b[m","b":1}`
	if got := string(s.JSON([]byte(raw))); got != raw {
		t.Errorf("%s became %s", raw, got)
	}
}

// A short line is passed on at once, even if a secret begins with its last letter.
func TestShortLineIsNotHeld(t *testing.T) {
	s, err := store(t, "key: gunter2hunter3\n", nil)
	if err != nil {
		t.Fatal(err)
	}
	out := &buffer{}
	w := s.Writer(out)
	if _, err := w.Write([]byte("waiting\n")); err != nil || out.String() != "waiting\n" {
		t.Errorf("%q, %v", out.String(), err)
	}
}
