package evaluator

import (
	"fmt"
	"maps"
	"os"
	"strings"
	"testing"
)

// TestMain also makes the test binary the child.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == Command {
		os.Exit(Main(os.Stdin, os.Stdout))
	}
	os.Exit(m.Run())
}

const begin = "import { defineAgent } from \"coven\";\n"

func evaluated(t *testing.T, files map[string]string) map[string]Result {
	t.Helper()
	return (&Evaluator{Self: os.Executable}).Evaluate(files)
}

// T-02: The definition of a file, with each value on its line.
func TestEvaluate(t *testing.T) {
	const text = begin + `
type Domain = "analysis" | "coding";
const domain: Domain = "analysis";

export default defineAgent({
  id: "analyst", domain,
  tools: [
    "read",
    ` + "`gr${\"ep\"}`" + `,
  ],
  metadata: { "a key": [1, 2.5, true, null], é: "ü\n\u2028\x7f😀", left: undefined },
} as const);
`
	r := evaluated(t, map[string]string{"analyst.ts": text})["analyst.ts"]
	const want = `




{
"id": "analyst", "domain": "analysis", 
"tools": [
"read", 
"grep"], 

"metadata": {"a key": [1, 2.5, true, null], "\u00e9": "\u00fc\n\u2028\x7f\U0001f600"}}`
	if r.Error != "" || r.Document != want {
		t.Errorf("got %q %s\nwant %q", r.Document, r.Error, want)
	}
}

// Actions that a file cannot perform, and the resulting errors with file, line and reason.
func TestRefused(t *testing.T) {
	files := map[string]string{}
	wants := map[string]string{}
	for name, c := range map[string]struct{ text, want string }{
		"loop.ts":     {begin + "\nlet i = 0; while (true) { i++; }\n", "loop.ts:3 takes more than 500ms of processor time"},
		"getter.ts":   {begin + "export default defineAgent({\n  get id() { for (;;); },\n});", "getter.ts:3 takes more than 500ms of processor time"},
		"memory.ts":   {begin + "\nconst all = [];\nfor (let i = 0; ; i++) all.push(\"é\".repeat(1e7) + i);", "memory.ts:4 "}, // the time limit may be exceeded first
		"large.ts":    {begin + "\nconst all = \"é\".repeat(2e8);", "large.ts:"},
		"deep.ts":     {begin + "\nfunction f() { f(); }\nf();", "deep.ts:3 calls functions in each other more than 1000 deep"},
		"huge.ts":     {begin + "export default defineAgent({ id: \"a\",\n metadata: new Array(2000).fill(\"x\".repeat(10000)) });", "huge.ts:2 has a definition of more than 4 MB"},
		"getters.ts":  {begin + "let n = 0;\nexport default defineAgent({\n  get id() { if (n++ > 0) throw new Error(\"later\"); return \"a\"; } });", ""},
		"later.ts":    {begin + "export default defineAgent({\n  get id() { throw new Error(\"later\"); } });", "later.ts:3 throws Error: later"},
		"other.ts":    {begin + "export default { get id() { throw 1; } };", "other.ts:1 exports something other than the value of defineAgent"},
		"evil.ts":     {begin + "\nthrow { get x() { throw 1; }, toString() { return \"evil\"; } };", "evil.ts:3 throws evil"},
		"endless.ts":  {begin + "\nthrow { get x() { for (;;); }, toString() { return \"evil\"; } };", "endless.ts:3 throws evil"},
		"proxy.ts":    {begin + "\nexport default defineAgent(new Proxy({}, { ownKeys() { throw new Error(\"trap\"); } }));", "proxy.ts:3 throws Error: trap"},
		"length.ts":   {begin + "const a: any[] = [];\na.length = 4294967295;\nexport default defineAgent({ tools: a });", "length.ts:4 has an undefined value in tools[0]"},
		"throws.ts":   {begin + "\n\nthrow new Error(\"no\\nway\");", "throws.ts:4 throws Error: no way"},
		"odd.ts":      {begin + "\nthrow { toString() { throw 1; } };", "odd.ts:3 throws something that is no text"},
		"number.ts":   {begin + "export default 7;", "number.ts:1 exports something other than the value of defineAgent"},
		"plain.ts":    {begin + "export default { id: \"a\" };", "plain.ts:1 exports something other than the value of defineAgent"},
		"text.ts":     {begin + "\nexport default defineAgent(\"a\" as any);", "text.ts:3 calls defineAgent without an object"},
		"list.ts":     {begin + "export default defineAgent([]);", "list.ts:2 calls defineAgent without an object"},
		"async.ts":    {begin + "export default (async () => defineAgent({ id: \"a\" }))();", "async.ts:1 exports a promise: nothing in it can be async"},
		"await.ts":    {begin + "\nexport default await defineAgent({});", "await.ts:3 is not valid TypeScript: Top-level await"},
		"syntax.ts":   {begin + "export default defineAgent({\n  id: \"a\"\n  role: 7\n});", "syntax.ts:4 is not valid TypeScript: Expected \"}\" but found \"role\""},
		"missing.ts":  {begin + "export const a = defineAgent({});", "missing.ts:1 has no default export"},
		"empty.ts":    {"", "empty.ts:1 has no default export"},
		"function.ts": {begin + "export default defineAgent({\n  id: \"a\",\n  tools: [\"x\",\n    () => 1],\n});", "function.ts:5 has a function in tools[1]"},
		"cycle.ts":    {begin + "const a: any = {};\na.metadata = a;\nexport default defineAgent(a);", "cycle.ts:4 has values in each other more than 50 deep in metadata.metadata"},
		"nan.ts":      {begin + "export default defineAgent({\n  max_turns: 0 / 0 });", "nan.ts:3 has a number in max_turns that is none"},
		"map.ts":      {begin + "export default defineAgent({\n  metadata: new Map() });", "map.ts:3 has an object in metadata that is no plain one"},
		"big.ts":      {begin + "export default defineAgent({\n  max_turns: 7n });", "big.ts:3 has a *big.Int in max_turns"},
		"fs.ts":       {begin + "import fs from \"fs\";\nexport default defineAgent({});", "fs.ts:2 imports \"fs\": only \"coven\" and files beside it"},
		"node.ts":     {begin + "\nimport * as fs from \"node:fs\";\nexport default defineAgent({ id: fs.readFileSync(\"/etc/passwd\") });", "node.ts:3 imports \"node:fs\""},
		"outside.ts":  {begin + "import x from \"../x\";\nexport default defineAgent({});", "outside.ts:2 imports \"../x\""},
		"absolute.ts": {begin + "import x from \"/etc/passwd\";\nexport default defineAgent({});", "absolute.ts:2 imports \"/etc/passwd\""},
		"nothere.ts":  {begin + "import x from \"./nothere2\";\nexport default defineAgent({});", "nothere.ts:2 imports \"./nothere2\""},
		"dynamic.ts":  {begin + "\nimport(\"child_process\");\nexport default defineAgent({});", "dynamic.ts:3 imports \"child_process\""},
		"caught.ts":   {begin + "import(\"./good\"); import(\"fs\").catch(() => 1);\nexport default defineAgent({});", "caught.ts:2 imports \"fs\""},
		"process.ts":  {begin + "\nexport default defineAgent({ id: process.env.HOME });", "process.ts:3 throws ReferenceError: process is not defined"},
		"fetch.ts":    {begin + "\nfetch(\"http://127.0.0.1\");", "fetch.ts:3 throws ReferenceError: fetch is not defined"},
		"sibling.ts":  {begin + "import { x } from \"./broken\";\nexport default defineAgent({ id: x });", "broken.ts:2 throws Error: broken"},
		"broken.ts":   {"export const x = 1;\nthrow new Error(\"broken\");", "broken.ts:2 throws Error: broken"},
		"invalid.ts":  {begin + "import { x } from \"./unread\";\nexport default defineAgent({ id: x });", "unread.ts:2 is not valid TypeScript"},
		"unread.ts":   {"export const x = 1;\nlet let;", "unread.ts:2 is not valid TypeScript"},
		"mapped.ts":   {begin + "throw new Error(\"x\");\n//# sourceMappingURL=/etc/passwd", "mapped.ts:2 throws Error: x"},
		"good.ts":     {begin + "export default defineAgent({ id: \"good\" });", ""},
		"zlast.ts":    {begin + "export default defineAgent({ id: \"last\" });", ""},
	} {
		files[name], wants[name] = c.text, c.want
	}
	if racing { // with the race detector it is slower than the time limit
		delete(files, "memory.ts")
		delete(wants, "memory.ts")
	}
	results := evaluated(t, files)
	if len(results) != len(files) {
		t.Errorf("%d results of %d files", len(results), len(files))
	}
	if got := results["large.ts"].Error; !strings.HasPrefix(got, "needs more than 128 MB of memory") {
		t.Errorf("large.ts: got %q", got)
	}
	for name, want := range wants {
		r := results[name]
		got := ""
		if r.Error != "" {
			got = fmt.Sprintf("%s:%d %s", r.In, r.Line, r.Error)
		}
		if want == "" && got != "" || !strings.HasPrefix(got, want) || (r.Document == "") != (r.Error != "") {
			t.Errorf("%s: got %q, want %q (%q)", name, got, want, r.Document)
		}
	}
}

// Built-in functions cannot be interrupted. The child ends then, and the next one
// evaluates the rest.
func TestChildThatEnds(t *testing.T) {
	ok := begin + "export default defineAgent({ id: \"a\" });"
	results := evaluated(t, map[string]string{
		"a.ts": ok,
		"b.ts": begin + "\"x\".repeat(2 ** 30).split(\"\");",
		"c.ts": ok,
		"d.ts": begin + "/^(a+)+$(?!x)/.test(\"a\".repeat(40) + \"b\");",
		"e.ts": ok,
	})
	for name, want := range map[string]string{"a.ts": "", "c.ts": "", "e.ts": "", "b.ts": "memory", "d.ts": "processor time"} {
		if r := results[name]; (want == "") != (r.Error == "") || !strings.Contains(r.Error, want) || r.Error != "" && (r.In != name || r.Line != 1) {
			t.Errorf("%s: %+v, want %q", name, r, want)
		}
	}
}

// An imported file needs no definition.
func TestSiblings(t *testing.T) {
	results := evaluated(t, map[string]string{
		"a.ts":      begin + "import { tools } from \"./shared\";\nimport more from \"./more.js\";\nexport default defineAgent({ id: \"a\", tools, ...more });",
		"b.ts":      begin + "import other from \"./a.ts\";\nexport default defineAgent({ ...other, id: \"b\" });",
		"shared.ts": "export const tools = [\"read\"] as const;",
		"more.ts":   "export default { domain: \"x\" };",
		"alone.ts":  "export const x = 1;",
	})
	if r := results["a.ts"]; r.Error != "" || !strings.Contains(r.Document, `"tools": ["read"]`) || !strings.Contains(r.Document, `"domain": "x"`) {
		t.Errorf("%+v", r)
	}
	if r := results["b.ts"]; r.Error != "" || !strings.Contains(r.Document, `"id": "b"`) || !strings.Contains(r.Document, `"read"`) {
		t.Errorf("%+v", r)
	}
	for name, want := range map[string]bool{"shared.ts": true, "more.ts": false, "alone.ts": false, "a.ts": false} {
		if results[name].Helper != want {
			t.Errorf("%s: helper %v", name, !want)
		}
	}
}

// A file has no clock and no randomness, so its definition is always the same.
func TestSame(t *testing.T) {
	files := map[string]string{"a.ts": begin + "export default defineAgent({ metadata: { at: Date.now(), d: String(new Date()), r: Math.random() } });"}
	first, second := evaluated(t, files)["a.ts"], evaluated(t, files)["a.ts"]
	if first.Error != "" || first.Document != second.Document || !strings.Contains(first.Document, `"at": 0`) {
		t.Errorf("%+v\n%+v", first, second)
	}
}

// The same files are evaluated only once.
func TestOneChild(t *testing.T) {
	started := 0
	e := &Evaluator{Self: func() (string, error) { started++; return os.Executable() }}
	files := map[string]string{"a.ts": begin + "export default defineAgent({ id: \"a\" });", "b.ts": begin + "export default defineAgent({ id: \"b\" });"}
	e.Evaluate(files)
	if e.Evaluate(maps.Clone(files)); started != 1 {
		t.Errorf("%d children", started)
	}
	files = map[string]string{"a.ts": files["b.ts"], "b.ts": files["b.ts"]}
	if r := e.Evaluate(files); started != 2 || !strings.Contains(r["a.ts"].Document, `"b"`) {
		t.Errorf("%d children, %+v", started, r)
	}
	if r := e.Evaluate(map[string]string{}); len(r) != 0 || started != 2 {
		t.Errorf("%d children for no files", started)
	}
}
