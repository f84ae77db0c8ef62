package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// module makes a Go module whose test Test/sub fails as often as its file "failures" has bytes, and
// whose test Other fails once if there is a file "other".
func module(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	files["go.mod"] = "module example.test/m\n\ngo 1.26\n"
	files["m_test.go"] = `package m

import ("os"; "testing")

func fail(t *testing.T, file string) {
	text, _ := os.ReadFile(file)
	if len(text) > 0 {
		_ = os.WriteFile(file, text[1:], 0o644)
		t.Error("not yet")
	}
}

func Test(t *testing.T) { t.Run("sub", func(t *testing.T) { fail(t, "failures") }) }

func TestOther(t *testing.T) { fail(t, "other") }

func TestGood(t *testing.T) { t.Log("silence") }
`
	for file, text := range files {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestRun(t *testing.T) {
	for _, c := range []struct {
		name     string
		files    map[string]string
		code     int
		has, not []string
	}{
		{"all pass", map[string]string{}, 0, []string{"ok  ", "example.test/m", "the 2 slowest tests:"}, []string{"silence", "again"}},
		{"once", map[string]string{"failures": "1"}, 0, []string{"not yet", "unsteady: example.test/m Test/sub (1 of 4)"}, []string{"silence"}},
		{"twice", map[string]string{"failures": "11"}, 1, []string{"fails: example.test/m Test/sub (2 of 2)"}, []string{"unsteady"}},
		{"always", map[string]string{"failures": "111111"}, 1, []string{"fails:"}, []string{"unsteady"}},
		{"two tests", map[string]string{"failures": "1", "other": "1"}, 1, []string{"Test/sub (1 of 4)", "TestOther (1 of 4)", "a second unsteady test"}, nil},
		{"does not build", map[string]string{"m.go": "package m\n\nvar x int = `a`\n"}, 1, []string{"m.go:3"}, []string{"again", "unsteady"}},
		{"panics", map[string]string{"z_test.go": "package m\n\nfunc init() { panic(\"no\") }\n"}, 1, []string{"panic: no"}, []string{"unsteady"}},
		{"exits", map[string]string{"z_test.go": "package m\n\nimport (\"os\"; \"testing\")\n\nfunc TestMain(*testing.M) { os.Exit(3) }\n"}, 1, []string{"exit status 3"}, []string{"unsteady"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Chdir(module(t, c.files))
			var out strings.Builder
			r := run{out: printer{&out}, err: printer{&out}, again: 3, slowest: 2, record: filepath.Join(t.TempDir(), "unsteady"), flags: []string{"-vet=off"}, packages: []string{"./..."}}
			if code := r.run(t.Context()); code != c.code {
				t.Errorf("exit status %d, want %d", code, c.code)
			}
			for _, text := range c.has {
				if !strings.Contains(out.String(), text) {
					t.Errorf("no %q", text)
				}
			}
			for _, text := range c.not {
				if strings.Contains(out.String(), text) {
					t.Errorf("has %q", text)
				}
			}
			if t.Failed() {
				t.Log(out.String())
			}
		})
	}
}

func TestOutput(t *testing.T) {
	t.Chdir(module(t, map[string]string{}))
	var out strings.Builder
	r := run{out: printer{&out}, err: printer{&out}, verbose: true, flags: []string{"-vet=off"}, packages: []string{"."}}
	if code := r.run(t.Context()); code != 0 || !strings.Contains(out.String(), "silence") {
		t.Errorf("exit status %d\n%s", code, out.String())
	}
}

// Two steps of one CI run share the record.
func TestRecord(t *testing.T) {
	record := filepath.Join(t.TempDir(), "unsteady")
	for step, want := range []int{0, 1} {
		t.Chdir(module(t, map[string]string{"failures": "1"}))
		var out strings.Builder
		r := run{out: printer{&out}, err: printer{&out}, again: 1, record: record, flags: []string{"-vet=off"}, packages: []string{"."}}
		if code := r.run(t.Context()); code != want {
			t.Errorf("step %d: exit status %d\n%s", step, code, out.String())
		}
	}
}
