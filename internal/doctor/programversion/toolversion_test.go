package programversion

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestOlderThan(t *testing.T) {
	for _, c := range []struct {
		said, least  string
		older, known bool
	}{
		{"git version 2.39.5", "2.38.0", false, true},
		{"git version 2.38", "2.38.0", true, true},
		{"git version 2.37.9.windows.1", "2.38.0", true, true},
		{"git version 10.0.0", "2.38.0", false, true},
		{"2.1.330 (Claude Code)", "2.1.330", false, true},
		{"2.1.99 (Claude Code)", "2.1.330", true, true},
		{"3.0.0", "2.1.330", false, true},
		{"unknown", "2.1.330", true, false},
		{"", "2.1.330", true, false},
	} {
		older, known := OlderThan(c.said, c.least)
		if older != c.older || known != c.known {
			t.Errorf("OlderThan(%q, %s) = %v, %v", c.said, c.least, older, known)
		}
	}
}

// A program is run again only if its file has changed, or if the cache is damaged.
func TestCache(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	c := Cache{Dir: filepath.Join(dir, "cache")}
	if _, err := c.Of(t.Context(), "agent-cli"); !errors.Is(err, ErrMissing) {
		t.Fatalf("a program that is not installed: %v", err)
	}
	program, calls := filepath.Join(dir, "agent-cli"), filepath.Join(dir, "calls")
	install := func(version string, at time.Time) {
		t.Helper()
		text := "#!/bin/sh\necho x >>" + calls + "\necho '" + version + "'\n"
		if err := errors.Join(os.WriteFile(program, []byte(text), 0o755), os.Chtimes(program, at, at)); err != nil {
			t.Fatal(err)
		}
	}
	asked := func(want string, times int) {
		t.Helper()
		got, err := c.Of(t.Context(), "agent-cli")
		log, _ := os.ReadFile(calls)
		if err != nil || got != want || strings.Count(string(log), "x") != times {
			t.Errorf("got %q, %v after %d calls; want %q after %d", got, err, strings.Count(string(log), "x"), want, times)
		}
	}
	stored := filepath.Join(c.Dir, "versions", "agent-cli.json")
	start := time.Unix(1_700_000_000, 0)
	install("1.2.3 (A)", start)
	asked("1.2.3 (A)", 1)
	asked("1.2.3 (A)", 1)
	install("1.2.4 (A)", start.Add(time.Second))
	asked("1.2.4 (A)", 2)
	install("1.2.55 (A)", start.Add(time.Second)) // another size
	asked("1.2.55 (A)", 3)
	for n, damage := range []string{"", "{", "[]", `{"path":"` + program + `"}`, strings.Repeat(" ", maxStored+1)} {
		if err := os.WriteFile(stored, []byte(damage), 0o600); err != nil {
			t.Fatal(err)
		}
		asked("1.2.55 (A)", 4+n)
		asked("1.2.55 (A)", 4+n)
	}
	install("no version", start.Add(2*time.Second)) // is not stored
	asked("no version", 9)
	asked("no version", 10)
	c.Dir = filepath.Join(program, "no-directory")
	asked("no version", 11)
	c.Dir = ""
	asked("no version", 12)
	if _, err := os.Stat(filepath.Join("versions", "agent-cli.json")); err == nil {
		t.Error("a cache without a directory wrote into the current one")
	}
}

// Additional output of a program and processes that it leaves running do no harm.
func TestOf(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	for name, c := range map[string]struct{ script, want, fails string }{
		"much":              {script: "echo 1.2.3; head -c 10000000 /dev/zero | tr '\\0' x; echo no >&2", want: "1.2.3 " + strings.Repeat("x", maxLine-len("1.2.3 ")-1) + "…"},
		"nothing":           {script: ":"},
		"a child":           {script: "echo 1.2.3; sleep 2 & exit", want: "1.2.3"},
		"a failure":         {script: "head -c 10000000 /dev/zero | tr '\\0' x >&2; exit 3", fails: "ends with exit code 3: " + strings.Repeat("x", maxLine-1) + "…"},
		"killed":            {script: "kill -9 $$", fails: "signal: killed"},
		"no such directory": {fails: "no such file or directory"},
	} {
		text := "#!/bin/sh\n" + c.script + "\n"
		if c.script == "" {
			text = "#!/no/such/interpreter\n"
		}
		if err := os.WriteFile(filepath.Join(dir, "agent-cli"), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
		line, err := Of(t.Context(), "agent-cli")
		if line != c.want || (err == nil) != (c.fails == "") || err != nil && !strings.HasSuffix(err.Error(), c.fails) {
			t.Errorf("%s: got %.300q, %.300v; want %.300q, %.300q", name, line, err, c.want, c.fails)
		}
	}
}
