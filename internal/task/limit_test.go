package task

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// withHuge creates a file with three tasks. The description of the second one has size
// bytes.
func withHuge(t *testing.T, size int64) (*File, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "issues.jsonl")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []io.Reader{
		strings.NewReader(`{"id":"a","title":"A","status":"open"}` + "\n" + `{"id":"big","title":"B","description":"`),
		io.LimitReader(xs{}, size),
		strings.NewReader(`","status":"open"}` + "\n" + `{"id":"c","title":"C","status":"open","dependencies":[{"depends_on_id":"big"}]}`),
	} {
		if _, err := io.Copy(f, text); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return OpenFile(path, t.TempDir()), path
}

type xs struct{}

func (xs) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

// allocated returns the number of bytes that do allocates.
func allocated(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// A task of 100 MB uses no more memory than one of the maximum size, does not affect
// other tasks, and is preserved when others change.
func TestHugeTask(t *testing.T) {
	least, _ := withHuge(t, MaxText-1000)
	floor := allocated(func() {
		if all, err := least.List(t.Context()); err != nil || len(all) != 3 {
			t.Fatalf("%v, %v", all, err)
		}
	})
	f, path := withHuge(t, 100<<20)
	used := allocated(func() {
		ready, err := f.Ready(t.Context())
		if err != nil || len(ready) != 1 || ready[0].ID != "a" {
			t.Fatalf("ready: %v, %v", ready, err)
		}
		if _, err := f.Claim(t.Context(), "a", "me"); err != nil {
			t.Fatal(err)
		}
		if _, err := f.Add(t.Context(), New{Title: "D"}); err != nil {
			t.Fatal(err)
		}
	})
	if used > 4*floor+(16<<20) {
		t.Errorf("%d bytes, %d for one of the size that is allowed", used, floor)
	}
	big, err := f.Get(t.Context(), "big")
	if err != nil || big.Usable() == nil || big.Work() {
		t.Errorf("%+v, %v", big, err)
	}
	if _, err := f.Claim(t.Context(), "big", "me"); !errors.As(err, new(*TooLargeError)) || !strings.Contains(err.Error(), "issues.jsonl:2: task big has more than") {
		t.Errorf("claim: %v", err)
	}
	if ids, err := f.Blockers(t.Context(), "c"); err != nil || fmt.Sprint(ids) != "[big]" {
		t.Errorf("what depends on it: %v, %v", ids, err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.Split(data, []byte("\n"))
	if len(lines) != 4 || len(lines[1]) != 100<<20+len(`{"id":"big","title":"B","description":"","status":"open"}`) || !json.Valid(lines[1]) {
		t.Errorf("%d lines, the long one has %d bytes", len(lines), len(lines[1]))
	}
	if !bytes.Contains(lines[0], []byte("in_progress")) || !bytes.Contains(lines[3], []byte(`"D"`)) {
		t.Errorf("%s, %s", lines[0], lines[3])
	}
	if err := os.Truncate(path, 10<<30); err != nil {
		t.Fatal(err)
	}
	if _, err := f.List(t.Context()); err == nil || !strings.Contains(err.Error(), "larger than") {
		t.Errorf("10 GB: %v", err)
	}
}

func TestAddTooLarge(t *testing.T) {
	f := OpenFile(filepath.Join(t.TempDir(), ".beads", "issues.jsonl"), t.TempDir())
	n := New{Title: "T", Description: strings.Repeat("x", MaxText-400)}
	added, err := f.Add(t.Context(), n)
	if err != nil {
		t.Fatalf("at the limit: %v", err)
	}
	if err := added.Usable(); err != nil {
		t.Errorf("at the limit: %v", err)
	}
	for name, more := range map[string]string{"text": strings.Repeat("x", 401), "line": strings.Repeat("\n", 200)} {
		n.Acceptance = []string{more}
		if _, err := f.Add(t.Context(), n); !errors.Is(err, ErrInvalid) {
			t.Errorf("add above, %s: %v", name, err)
		}
		if _, err := f.Edit(t.Context(), added.ID, Edit{Acceptance: &n.Acceptance}); !errors.Is(err, ErrInvalid) {
			t.Errorf("edit above, %s: %v", name, err)
		}
	}
	if now, err := f.Get(t.Context(), added.ID); err != nil || now.Usable() != nil {
		t.Errorf("then: %v, %v", err, now.Usable())
	}
}

// For any chunking of a program's answer, strings within the limit are unchanged, and the others are
// marked as truncated.
func TestShortener(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var parts []string
		cut := map[string]bool{}
		for i := range rapid.IntRange(1, 3).Draw(t, "tasks") {
			text := rapid.SampledFrom([]string{"", "x", `q"\u00e9\\`, "é", "\U0001F989"}).Draw(t, "text")
			id := fmt.Sprint("t", i)
			if rapid.IntRange(0, 9).Draw(t, "size") == 0 {
				text, cut[id] = strings.Repeat(text+"y", MaxText/len(text+"y")+1), true
			}
			raw, err := json.Marshal(map[string]string{"id": id, "title": "t", "description": text})
			if err != nil {
				t.Fatal(err)
			}
			parts = append(parts, string(raw))
		}
		whole := "[" + strings.Join(parts, ",") + "]"
		out := &bytes.Buffer{}
		s := &shortener{to: out}
		for rest := whole; rest != ""; {
			n := min(rapid.IntRange(1, 1<<19).Draw(t, "n"), len(rest))
			if _, err := io.WriteString(s, rest[:n]); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		if err := s.flush(); err != nil || len(cut) == 0 && out.String() != whole || out.Len() > len(parts)*(headLen+1000) {
			t.Fatalf("%d bytes became %d, %v", len(whole), out.Len(), err)
		}
		tasks, err := (&output{stdout: out.Bytes()}).tasks()
		if err != nil || len(tasks) != len(parts) {
			t.Fatalf("%v, %v", tasks, err)
		}
		for _, task := range tasks {
			if (task.Usable() != nil) != cut[task.ID] {
				t.Fatalf("%s: %v", task.ID, task.Usable())
			}
		}
	})
	out := &bytes.Buffer{}
	s := &shortener{to: out}
	if _, err := io.WriteString(s, `Error: no "database`); err != nil || s.flush() != nil || out.String() != `Error: no "database` {
		t.Errorf("%q", out)
	}
}
