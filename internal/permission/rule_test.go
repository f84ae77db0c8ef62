package permission

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// There are exactly six bundles, plus the dotted names.
func TestExpand(t *testing.T) {
	var words []string
	for _, b := range Bundles() {
		words = append(words, b.Word)
		for _, name := range b.Names {
			if name.Word() != b.Word {
				t.Errorf("%s is called %s", name, name.Word())
			}
		}
	}
	if got := strings.Join(words, " "); got != "FilesystemRead FilesystemWrite SemanticSearch DatabaseRead DatabaseWrite NetworkAccess" {
		t.Error(got)
	}
	for _, word := range Words() {
		if names, ok := Expand(word); !ok || len(names) == 0 {
			t.Errorf("%s is not known", word)
		}
	}
	if _, ok := Expand("WriteDatabase"); ok {
		t.Error("an unknown word is known")
	}
	if got := Join([]Name{BashExecute, CodeSearch, FileRead}); got != "FilesystemRead, SemanticSearch, bash.execute" {
		t.Error(got)
	}
}

// File patterns begin at the top of the worktree.
func TestPatterns(t *testing.T) {
	for _, tt := range []struct {
		pattern, path string
		action        Action
		want          bool
	}{
		{"/src/**", "/w/src/app.ts", Allow, true},
		{"/src/**", "/w/src/a/b", Allow, true},
		{"/src/**", "/w/srcs/app.ts", Allow, false},
		{"/src/**", "/w/a/src/app.ts", Allow, false},
		{"/src/*.ts", "/w/src/a/app.ts", Allow, false},
		{"*.pem", "/w/a/b/key.pem", Deny, true},
		{"*.pem", "/w/key.pem", Deny, true},
		{".env", "/w/.env", Deny, true},
		{".env", "/w/a/.env", Deny, true},
		{"/secret/**", "/w/SECRET/x", Deny, true},
		{"/secret/**", "/w/SECRET/x", Allow, false},
		{"/**", "/w", Allow, true},
		{"*", "/w/a/b", Allow, true},
		{"/src/**", "/elsewhere/src/x", Allow, false},
	} {
		r := Rule{Permission: FileWrite, Pattern: tt.pattern, Action: tt.action}
		if got := r.matches("/w", Request{Permission: FileWrite, Path: tt.path}); got != tt.want {
			t.Errorf("%s matches %s: %v", r, tt.path, got)
		}
		if r.matches("/w", Request{Permission: FileRead, Path: tt.path}) {
			t.Errorf("%s matches another permission", r)
		}
	}
	for pattern, ok := range map[string]bool{"/src/**": true, "*.go": true, "/src/[": false, "../x": false} {
		if err := CheckPattern(FileRead, pattern); (err == nil) != ok {
			t.Errorf("%s: %v", pattern, err)
		}
	}
	host := Rule{Permission: NetFetch, Pattern: "*.example.org", Action: Allow}
	if !host.matches("/w", Request{Permission: NetFetch, Subject: "a.example.org"}) || host.matches("/w", Request{Permission: NetFetch, Subject: "example.com"}) {
		t.Error("a host is not matched")
	}
}

// Command patterns match like regular expressions, and a hole matches anything.
func TestGlobText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pattern := rapid.StringOfN(rapid.SampledFrom([]rune("ab *")), 0, 6, -1).Draw(t, "pattern")
		text := rapid.StringOfN(rapid.SampledFrom([]rune("ab \x00")), 0, 5, -1).Draw(t, "text")
		expr := regexp.MustCompile("(?s)^" + strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, ".*") + "$")
		if got, want := globText(pattern, text, false), expr.MatchString(text); got != want {
			t.Fatalf("surely: %v", got)
		}
		possible := false
		for _, filled := range fillings(text, 3) {
			possible = possible || expr.MatchString(filled)
		}
		if got := globText(pattern, text, true); possible && !got || got && !possible && strings.Count(text, "\x00") < 2 && len(pattern) <= 3 {
			t.Fatalf("possibly: %v, but %v", got, possible)
		}
	})
}

// fillings returns variants of a text in which each hole is replaced by all short texts.
func fillings(text string, most int) []string {
	before, after, found := strings.Cut(text, "\x00")
	if !found {
		return []string{text}
	}
	fills := []string{""}
	for range most {
		for _, f := range slices.Clone(fills) {
			for _, c := range "ab " {
				if f := f + string(c); !slices.Contains(fills, f) {
					fills = append(fills, f)
				}
			}
		}
	}
	var all []string
	for _, rest := range fillings(after, 1) {
		for _, f := range fills {
			all = append(all, before+f+rest)
		}
	}
	return all
}

// An agent is never allowed anything that an ancestor is not, for any definitions, rules, limits and
// approval requirements.
func TestNoAgentExceedsItsParent(t *testing.T) {
	names := []Name{FileRead, FileWrite, CodeSearch, BashExecute, NetFetch, AgentSpawn}
	rule := rapid.Custom(func(t *rapid.T) Rule {
		return Rule{
			Permission: rapid.SampledFrom(names).Draw(t, "permission"),
			Pattern:    rapid.SampledFrom([]string{"/**", "/src/**", "*.go", "git *", "rm *", "*", "build"}).Draw(t, "pattern"),
			Action:     rapid.SampledFrom(Actions()).Draw(t, "action"),
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		var chain []*Policy
		for depth := range rapid.IntRange(1, 4).Draw(t, "depth") {
			p := &Policy{Root: "/w", Agent: fmt.Sprint("a", depth)}
			for i := range rapid.IntRange(0, 3).Draw(t, "layers") {
				p.Layers = append(p.Layers, Layer{fmt.Sprint("layer ", i), rapid.SliceOfN(rule, 0, 3).Draw(t, "rules")})
			}
			if rapid.Bool().Draw(t, "limited") {
				p.Limit = rapid.SliceOf(rapid.SampledFrom(names)).Draw(t, "limit")
				if p.Limit == nil {
					p.Limit = []Name{}
				}
			}
			p.Asks = rapid.SliceOfN(rapid.SampledFrom(names), 0, 1).Draw(t, "asks")
			if depth > 0 {
				p.Parent = chain[depth-1]
			}
			chain = append(chain, p)
		}
		for _, req := range []Request{
			{Permission: FileWrite, Path: "/w/src/a.go"},
			{Permission: FileWrite, Path: "/w/x"},
			{Permission: FileRead, Path: "/w/src/a.go"},
			{Permission: FileWrite, Path: "/w/.git/config"},
			{Permission: FileWrite, Path: "/etc/x"},
			{Permission: CodeSearch, Path: "/w"},
			{Permission: BashExecute, Command: "git status && rm x"},
			{Permission: BashExecute, Command: "ls > src/x.go"},
			{Permission: BashExecute, Command: "$x"},
			{Permission: BashExecute, Command: "git status"},
			{Permission: NetFetch, Subject: "example.org"},
			{Permission: AgentSpawn, Subject: "build"},
			{Permission: Unknown},
		} {
			last := chain[len(chain)-1].Decide(req)
			for _, p := range chain {
				d := p.Decide(req)
				if d.Action.stricter(last.Action) {
					t.Fatalf("%+v: %s %+v, but %+v of the last", req, p.Agent, d, last)
				}
				if d.Reason == "" {
					t.Fatalf("%+v: no reason", req)
				}
				if d.Action == Allow && !slices.Contains(p.Grants(), req.Permission) {
					t.Fatalf("%+v is allowed to %s, which has only %v", req, p.Agent, p.Grants())
				}
			}
		}
	})
}
