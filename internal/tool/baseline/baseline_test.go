package baseline_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/coven-run/coven/internal/permission"
	"github.com/coven-run/coven/internal/search"
	"github.com/coven-run/coven/internal/tool"
	"github.com/coven-run/coven/internal/tool/baseline"
)

// agent is an agent with its tools.
type agent struct {
	t       *testing.T
	dir     string
	refused []string // directories whose files a rule refuses, below dir
	asked   []string // what was checked: "file.read /a"
	tools   []tool.Tool
}

func newAgent(t *testing.T, files map[string]string) *agent {
	t.Helper()
	a := &agent{t: t, dir: t.TempDir()}
	for path, text := range files {
		a.write(path, text)
	}
	sessions := filepath.Join(a.dir, ".coven", "sessions")
	a.tools = baseline.Tools(baseline.Options{
		Files:    search.New(search.Options{Root: a.dir, List: a.list, Now: time.Now}),
		Sessions: search.New(search.Options{Root: sessions, List: search.SessionFiles(sessions), Optional: true, Now: time.Now}),
		Check: func(needed permission.Name, path string) error {
			rel, err := filepath.Rel(a.dir, path)
			if err != nil {
				return err
			}
			a.asked = append(a.asked, string(needed)+" /"+rel)
			for _, dir := range a.refused {
				if strings.HasPrefix("/"+rel, dir+"/") && needed == permission.FileRead {
					return fmt.Errorf("deny file.read %s/**", dir)
				}
			}
			return nil
		},
	})
	return a
}

// list lists all files except those of git and coven.
func (a *agent) list(context.Context) (search.Listing, error) {
	l := search.Listing{Ignored: []string{".coven"}}
	err := filepath.WalkDir(a.dir, func(path string, d fs.DirEntry, err error) error {
		if rel, _ := filepath.Rel(a.dir, path); err == nil && !d.IsDir() && !strings.HasPrefix(rel, ".") {
			l.Files = append(l.Files, rel)
		}
		return err
	})
	return l, err
}

func (a *agent) write(path, text string) {
	a.t.Helper()
	file := filepath.Join(a.dir, path)
	must(a.t, os.MkdirAll(filepath.Dir(file), 0o755))
	must(a.t, os.WriteFile(file, []byte(text), 0o644))
}

func (a *agent) call(name, input string) (string, error) {
	a.t.Helper()
	at := slices.IndexFunc(a.tools, func(t tool.Tool) bool { return t.Name == name })
	if at < 0 {
		a.t.Fatalf("there is no %s", name)
	}
	return a.tools[at].Call(a.t.Context(), json.RawMessage(input))
}

// gives checks the result of a call.
func (a *agent) gives(name, input, want string) {
	a.t.Helper()
	if got, err := a.call(name, input); err != nil || got != want {
		a.t.Errorf("%s %s gives %q, %v; want %q", name, input, got, err, want)
	}
}

// fails checks that a call returns an error and no text.
func (a *agent) fails(name, input, want string) {
	a.t.Helper()
	if got, err := a.call(name, input); err == nil || got != "" || !strings.Contains(err.Error(), want) {
		a.t.Errorf("%s %s gives %q, %v; want the error %q", name, input, got, err, want)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestReadNote(t *testing.T) {
	a := newAgent(t, map[string]string{
		"a.txt": "1\n2\n3\n4", "empty": "", "binary": "a\x00b", "dir/b.txt": "b\n", ".git/config": "token", "sub/.git": "gitdir: x",
		"long": strings.Repeat("x\n", 2500), "wide": strings.Repeat("y", 70000), "mixed": "a\n" + strings.Repeat("z", 65536) + "\nb\n",
	})
	a.gives("read_note", `{"path":"a.txt"}`, "1\n2\n3\n4")
	a.gives("read_note", `{"path":"./dir/../a.txt","offset":2,"limit":2}`, "2\n3\n[lines 2 to 3 of 4: continue with offset 4]\n")
	a.gives("read_note", `{"path":"a.txt","offset":4,"limit":1}`, "4")
	a.gives("read_note", `{"path":"`+filepath.Join(a.dir, "dir/b.txt")+`"}`, "b\n")
	a.gives("read_note", `{"path":"empty"}`, "")
	a.gives("read_note", `{"path":"long"}`, strings.Repeat("x\n", 2000)+"[lines 1 to 2000 of 2500: continue with offset 2001]\n")
	a.gives("read_note", `{"path":"mixed"}`, "a\n"+"[lines 1 to 1 of 3: continue with offset 2]\n")
	a.fails("read_note", `{"path":"wide"}`, "line 1 is longer than")
	a.fails("read_note", `{"path":"a.txt","offset":5}`, "has 4 lines")
	a.fails("read_note", `{"path":"a.txt","offset":-1}`, "at least 1")
	a.fails("read_note", `{"path":"binary"}`, "not a text file")
	a.fails("read_note", `{"path":"dir"}`, "dir cannot be read")
	a.fails("read_note", `{"path":"none"}`, "there is no file none")
	a.fails("read_note", `{"path":""}`, "path is empty")
	a.fails("read_note", `{"file":"a.txt"}`, `unknown field "file"`)
	a.fails("read_note", `{"path":".git/config"}`, "belongs to git")
	a.fails("read_note", `{"path":"sub/.git"}`, "belongs to git")
	must(t, os.Truncate(filepath.Join(a.dir, "long"), 11<<20))
	a.fails("read_note", `{"path":"long"}`, "larger than")
}

// Nothing outside of the root is read, through any path or link, and no pipe is opened.
func TestReadNoteStaysInside(t *testing.T) {
	outside := t.TempDir()
	must(t, os.WriteFile(filepath.Join(outside, "x"), []byte("token"), 0o644))
	a := newAgent(t, map[string]string{"a.txt": "a", "dir/b.txt": "b"})
	at := func(name string) string { return filepath.Join(a.dir, name) }
	for link, target := range map[string]string{
		"file": filepath.Join(outside, "x"), "directory": outside, "up": "..", "dir/inside": "../a.txt", "loop": "loop",
	} {
		must(t, os.Symlink(target, at(link)))
	}
	must(t, syscall.Mkfifo(at("pipe"), 0o644))
	a.gives("read_note", `{"path":"dir/inside"}`, "a")
	for _, path := range []string{"file", "directory/x", "up/" + filepath.Base(outside) + "/x", "../x", "dir/../../x", filepath.Join(outside, "x"), "/etc/passwd"} {
		a.fails("read_note", fmt.Sprintf(`{"path":%q}`, path), "outside of the worktree")
	}
	a.fails("read_note", `{"path":"pipe"}`, "not a file")
	a.fails("read_note", `{"path":"loop"}`, "loop cannot be read")
}

// A rule can refuse single files, also behind links. Refused files appear in no result.
func TestRefused(t *testing.T) {
	a := newAgent(t, map[string]string{"secret/token.txt": "walrus token", "src/a.txt": "walrus", ".coven/sessions/s/session.md": "walrus"})
	must(t, os.Symlink("secret/token.txt", filepath.Join(a.dir, "link")))
	must(t, os.Symlink("secret", filepath.Join(a.dir, "public")))
	a.gives("read_note", `{"path":"secret/token.txt"}`, "walrus token")
	a.gives("list_notes", `{"glob":"*.txt"}`, "secret/token.txt\nsrc/a.txt")
	a.refused = []string{"/secret"}
	for _, path := range []string{"secret/token.txt", "link", "public/token.txt", "src/../secret/token.txt"} {
		a.fails("read_note", fmt.Sprintf(`{"path":%q}`, path), "deny file.read /secret/**")
	}
	a.gives("list_notes", `{"glob":"*.txt"}`, "src/a.txt")
	a.gives("list_notes", `{"glob":"token*"}`, "No files match.")
	got, err := a.call("semantic_search", `{"query":"walrus token"}`)
	must(t, err)
	if !strings.HasPrefix(got, "src/a.txt:1 (score ") || strings.Contains(got, "token") {
		t.Errorf("the answer is %q", got)
	}
	for _, check := range []string{"file.read /src/a.txt", "code.search /src/a.txt", "file.read /secret/token.txt"} {
		if !slices.Contains(a.asked, check) {
			t.Errorf("%s was not checked", check)
		}
	}
	a.refused = []string{"/secret", "/src", "/.coven"}
	a.gives("semantic_search", `{"query":"walrus","include_sessions":true}`, "Nothing found.")
}

func TestSearchOfAgents(t *testing.T) {
	files := map[string]string{".coven/sessions/s/session.md": "---\nstatus: failed\n---\nThe walrus.\n"}
	for i := range 80 {
		files[fmt.Sprintf("f%02d.txt", i)] = "walrus"
	}
	a := newAgent(t, files)
	for input, want := range map[string]int{
		`{"query":"walrus"}`:                           10,
		`{"query":"walrus","limit":3}`:                 3,
		`{"query":"walrus","limit":1000}`:              50,
		`{"query":"walrus","include_sessions":true}`:   11,
		`{"query":"narwhal","include_sessions":true}`:  0,
		`{"query":"walrus","include_sessions":false }`: 10,
	} {
		got, err := a.call("semantic_search", input)
		must(t, err)
		if n := strings.Count(got, "(score "); n != want || want == 0 && got != "Nothing found." {
			t.Errorf("%s has %d answers, want %d: %s", input, n, want, got)
		}
		if strings.Contains(got, ".coven/sessions/s/session.md:") != (want == 11) {
			t.Errorf("%s: %s", input, got)
		}
	}
	a.fails("semantic_search", `{"query":" "}`, "query is empty")
	a.fails("semantic_search", `{"query":"x","limit":-1}`, "at least 1")
	a.fails("list_notes", `{"glob":"["}`, "invalid glob")
	for i := range 1000 {
		a.write(fmt.Sprintf("more/%d", i), "")
	}
	got, err := a.call("list_notes", ``)
	must(t, err)
	if n := strings.Count(got, "\n"); n != 1000 || !strings.HasSuffix(got, "[1000 of 1080 files: use a narrower glob]") {
		t.Errorf("%d lines, the end is %q", n, got[len(got)-60:])
	}
}

// The schemas accept exactly the inputs of the tools.
func TestSchemas(t *testing.T) {
	a := newAgent(t, map[string]string{"a.txt": "a"})
	for _, c := range []struct {
		tool, input string
		valid       bool
	}{
		{"read_note", `{"path":"a.txt","offset":1,"limit":2}`, true},
		{"read_note", `{"path":1}`, false},
		{"read_note", `{}`, false},
		{"read_note", `{"path":"a.txt","lines":1}`, false},
		{"read_note", `{"path":"a.txt","offset":-1}`, false},
		{"list_notes", `{}`, true},
		{"list_notes", `{"glob":"*.txt"}`, true},
		{"list_notes", `{"glob":["*.txt"]}`, false},
		{"semantic_search", `{"query":"a","limit":1,"include_sessions":true}`, true},
		{"semantic_search", `{"limit":1}`, false},
		{"semantic_search", `{"query":"a","include_sessions":"yes"}`, false},
	} {
		_, err := a.call(c.tool, c.input)
		if valid := a.valid(c.tool, c.input); valid != c.valid || (err == nil) != c.valid {
			t.Errorf("%s %s: valid by its schema: %v, want %v; its error is %v", c.tool, c.input, valid, c.valid, err)
		}
	}
}

func (a *agent) valid(name, input string) bool {
	a.t.Helper()
	for _, tool := range a.tools {
		if tool.Name != name {
			continue
		}
		var schema jsonschema.Schema
		must(a.t, json.Unmarshal(tool.Schema, &schema))
		resolved, err := schema.Resolve(nil)
		must(a.t, err)
		var value any
		must(a.t, json.Unmarshal([]byte(input), &value))
		return resolved.Validate(value) == nil
	}
	a.t.Fatal(errors.New("there is no " + name))
	return false
}
