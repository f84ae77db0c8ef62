package command_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// at returns a location as tools print it.
func at(uri, more string) string {
	return `"locations": [{"physicalLocation": {"artifactLocation": {"uri": "` + uri + `"` + more + `}, "region": {"startLine": 3, "startColumn": 7, "endLine": 4}}}]`
}

// TestSARIF tests the shapes of the output of real tools.
func TestSARIF(t *testing.T) {
	dir := worktree(t)
	run := func(driver, results string) string {
		return `{"version": "2.1.0", "$schema": "https://json.schemastore.org/sarif-2.1.0.json", "runs": [{"tool": {"driver": {"name": "t"` + driver + `}}, "results": [` + results + `]}]}`
	}
	levels := `, "rules": [{"id": "R1", "defaultConfiguration": {"level": "note"}}, {"id": "R2", "defaultConfiguration": {"level": "error"}}, {"id": "R3"}]`
	for name, test := range map[string]struct {
		log     string
		options []string
		want    string
	}{
		"no results":                   {run("", ""), nil, "pass"},
		"no runs that found something": {`{"version": "2.1.0", "runs": []}`, nil, "pass"},
		"a level of its own": {
			run("", `{"ruleId": "errcheck", "level": "warning", "message": {"text": "not checked"}, `+at("a.go", `, "index": 0`)+`}`),
			nil, "pass\nwarning|a.go:3|not checked (errcheck)",
		},
		"that of its rule":             {run(levels, `{"ruleId": "R1", "message": {"text": "m"}, `+at("a.go", "")+`}, {"ruleId": "R2", "ruleIndex": 1, "message": {"text": "m"}}`), nil, "fail\ninfo|a.go:3|m (R1)\nerror||m (R2)"},
		"its rule by number":           {run(levels, `{"ruleIndex": 0, "message": {"text": "m"}}`), nil, "pass\ninfo||m"},
		"its rule's number is unknown": {run(levels, `{"ruleId": "R1", "ruleIndex": -1, "message": {"text": "m"}}`), nil, "pass\ninfo||m (R1)"},
		"a rule that says nothing":     {run(levels, `{"ruleId": "R3", "message": {"text": "m"}}`), []string{"severity", "warning"}, "pass\nwarning||m (R3)"},
		"a rule of an extension": {
			`{"runs": [{"tool": {"driver": {"rules": []}, "extensions": [{"name": "pack", "rules": [{"id": "js/x", "defaultConfiguration": {"level": "warning"}}]}]},
			"results": [{"ruleId": "js/x", "ruleIndex": 0, "rule": {"id": "js/x", "index": 0, "toolComponent": {"index": 0}}, "message": {"text": "m"}}]}]}`,
			nil, "pass\nwarning||m (js/x)",
		},
		"level none": {run("", `{"level": "none", "message": {"text": "m"}}`), nil, "pass\ninfo||m"},
		"suppressed": {
			run("", `{"level": "error", "message": {"text": "a"}, "suppressions": [{"kind": "inSource"}]}, {"level": "error", "message": {"text": "b"}, "suppressions": [{"kind": "external", "status": "accepted"}]},
			{"level": "warning", "message": {"text": "c"}, "suppressions": []}, {"level": "warning", "message": {"text": "d"}, "suppressions": [{"kind": "external", "status": "underReview"}]}`),
			nil, "pass\nwarning||c\nwarning||d",
		},
		"what is well": {
			run("", `{"kind": "pass", "level": "none", "message": {"text": "a"}}, {"kind": "notApplicable", "message": {"text": "b"}}, {"kind": "informational", "message": {"text": "c"}}, {"kind": "fail", "level": "error", "message": {"text": "d"}}, {"kind": "review", "level": "note", "message": {"text": "e"}}`),
			nil, "fail\nerror||d\ninfo||e",
		},
		"a base":             {run("", `{"level": "error", "message": {"text": "m"}, `+at("dir/c.go", `, "uriBaseId": "%SRCROOT%"`)+`}`), nil, "fail\nerror|dir/c.go:3|m"},
		"a file URI":         {run("", `{"level": "error", "message": {"text": "m"}, `+at("file://"+dir+"/dir/c.go", "")+`}`), nil, "fail\nerror|dir/c.go:3|m"},
		"a file URI of here": {run("", `{"level": "error", "message": {"text": "m"}, `+at("file://localhost"+dir+"/a.go", "")+`}`), nil, "fail\nerror|a.go:3|m"},
		"with escapes":       {run("", `{"level": "error", "message": {"text": "m"}, `+at("with%20space.go", "")+`}, {"level": "error", "message": {"text": "m"}, `+at("file://"+dir+"/%C3%BCber.go", "")+`}`), nil, "fail\nerror|with space.go:3|m\nerror|über.go:3|m"},
		"a path that leads out": {
			run("", `{"level": "error", "message": {"text": "m"}, `+at("../../etc/passwd", "")+`}, {"level": "error", "message": {"text": "n"}, `+at("file:///etc/passwd", "")+`}`),
			nil, "fail\nerror||../../etc/passwd:3: m\nerror||/etc/passwd:3: n",
		},
		"a name that is none":  {run("", `{"level": "error", "message": {"text": "m"}, `+at("a%0Ab.go", "")+`}`), nil, "fail\nerror||a\nb.go:3: m"},
		"a page of the web":    {run("", `{"level": "error", "message": {"text": "m"}, `+at("https://example.com/a.go", "")+`}`), nil, "fail\nerror||m"},
		"a file not touched":   {run("", `{"level": "error", "message": {"text": "m"}, `+at("b.go", "")+`}`), nil, "pass\n1 more in unchanged files"},
		"no line":              {run("", `{"level": "error", "message": {"text": "m"}, "locations": [{"physicalLocation": {"artifactLocation": {"uri": "a.go"}}}]}`), nil, "fail\nerror|a.go|m"},
		"only a logical place": {run("", `{"level": "error", "message": {"text": "m"}, "locations": [{"logicalLocations": [{"name": "f"}]}]}`), nil, "fail\nerror||m"},
		"no message":           {run("", `{"ruleId": "R", "level": "error", "message": {"id": "default"}}`), nil, "fail\nerror||(no message) (R)"},
		"a fix":                {run("", `{"level": "error", "message": {"text": "m"}, "fixes": [{"description": {"text": "do this"}, "artifactChanges": []}]}`), nil, "fail\nerror||m|do this"},
		"two runs": {
			`{"runs": [{"tool": {"driver": {}}, "results": [{"level": "error", "message": {"text": "a"}}]}, {"tool": {"driver": {}}, "results": [{"level": "note", "message": {"text": "b"}}]}]}`,
			nil, "fail\nerror||a\ninfo||b",
		},
		"a byte order mark":     {"\uFEFF" + run("", ""), nil, "pass"},
		"results that are null": {`{"runs": [{"tool": {"driver": {}}, "results": null}]}`, nil, "pass"},
	} {
		file := filepath.Join(t.TempDir(), "log")
		if err := os.WriteFile(file, []byte(test.log), 0o644); err != nil {
			t.Fatal(err)
		}
		r, err := review(t, dir, "cat "+file+"; echo a.go:1: not for us >&2", append([]string{"format", "sarif"}, test.options...)...)
		if err != nil || short(r) != test.want {
			t.Errorf("%s: got\n%s\n%v, want\n%s", name, short(r), err, test.want)
		}
	}
	for shell, want := range map[string]string{
		"echo oops":                  `"echo oops" printed invalid SARIF: invalid character 'o' looking for beginning of value: oops`,
		"true":                       `printed invalid SARIF: unexpected end of JSON input: (no output)`,
		"echo '{}'":                  `printed invalid SARIF: no runs`,
		`echo '{"runs": {}}'`:        `printed invalid SARIF: json: cannot unmarshal object`,
		`echo '{"runs": []}'; false`: `failed with exit code 1 and no finding`,
	} {
		if _, err := review(t, dir, shell, "format", "sarif"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", shell, err)
		}
	}
}
