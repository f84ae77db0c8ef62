package check_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/coven-run/coven/internal/config/check"
	"github.com/coven-run/coven/internal/config/yamldoc"
)

type file struct {
	Checks []check.Check `yaml:"checks"`
}

// A check without limits is a text, as in plans of earlier versions, and the others are mappings.
func TestForms(t *testing.T) {
	text := "checks:\n  - make test\n  - \"8080\"\n  - run: make db\n    lock: db\n  - run: make bench\n    serial: true\n  - run: make docs\n    reuse: true\n"
	want := []check.Check{{Run: "make test"}, {Run: "8080"}, {Run: "make db", Lock: "db"}, {Run: "make bench", Serial: true}, {Run: "make docs", Reuse: true}}
	doc, err := yamldoc.Parse("f.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var f file
	doc.Decode(&f)
	if err := doc.Err(); err != nil || !reflect.DeepEqual(f.Checks, want) {
		t.Fatalf("read %+v, %v", f, err)
	}
	again, err := yamldoc.Marshal(f)
	if err != nil || strings.ReplaceAll(string(again), "- 8080", `- "8080"`) != text {
		t.Errorf("written:\n%s%v", again, err)
	}
	data, err := json.Marshal(f.Checks)
	if err != nil || string(data) != `["make test","8080",{"run":"make db","lock":"db"},{"run":"make bench","serial":true},{"run":"make docs","reuse":true}]` {
		t.Errorf("JSON: %s, %v", data, err)
	}
}

func TestProblem(t *testing.T) {
	for text, want := range map[string]string{
		"make": "", `" "`: "is not a check", "{run: make, lock: db-1.x}": "", "{lock: db}": "is not a check",
		"{run: make, lock: a/b}": "not a name of a lock", "{run: make, lock: ..}": "not a name of a lock", "{run: make, lock: a b}": "not a name of a lock",
	} {
		doc, err := yamldoc.Parse("f.yaml", []byte("checks: ["+text+"]"))
		if err != nil {
			t.Fatal(err)
		}
		var f file
		if doc.Decode(&f); doc.Err() != nil {
			t.Fatal(doc.Err())
		}
		if got := f.Checks[0].Problem(); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %q", text, got)
		}
	}
}
