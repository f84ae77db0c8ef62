package coven_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// oldNames lists, by directory, identifiers that were renamed and must not return
// there or below, in whatever case their first letter is.
var oldNames = map[string][]string{
	"runner": {
		"workshop", "stage", "ground", "lander", "ending", "way", "purse", "newPurse", "book", "spending", "tally", "purseSpent",
		"claimContract", "parseClaim", "withoutClaim", "desk", "openDesk", "judging", "panel", "sit", "hear", "settle", "skip",
		"rehearsal", "cast", "play", "word", "begunAnew", "litter",
	},
	"runner/engine":      {"keep"},
	"internal/event":     {"review"},
	"internal/usage":     {"ledger", "book", "spending", "tally"},
	"internal/budget":    {"purse", "ledger", "book", "spending", "tally"},
	"internal/driver":    {"heard", "unheard", "begun", "hangUp", "frugal"},
	"internal/secret":    {"handed", "isTelling"},
	"internal/cli":       appNames,
	"internal/control":   appNames,
	"internal/project":   appNames,
	"internal/scheduler": appNames,
	"internal/doctor":    append([]string{"mend", "mended"}, appNames...),
	"plugins":            {"hire", "pulse", "feel", "doom", "obituary", "farewell", "member", "greeting", "desk"},
	"grimoires":          {"shelf", "written", "foreign"},
	"internal/session":   {"litter", "mailbox", "findLitter"},
	"internal/limits":    {"book"},
	"internal/trust":     {"territory"},
	"internal/terminal":  {"decoded", "spending"},
}

// appNames were names in package main of cmd/coven.
var appNames = []string{
	"house", "desk", "shift", "pool", "readyPool", "namedPool", "job", "told", "site", "crew", "judges", "errands", "mailbox", "news", "tab", "book",
	"waits", "purse", "ending", "territory", "litter", "tell", "anew", "goOn", "goesOn", "toTrust", "heard", "rehearse", "rehearsal", "rehearsed",
	"classify", "remedy", "oneLine", "shellWord",
}

func TestOldNames(t *testing.T) {
	for _, file := range goFiles(t) {
		var old []string
		for dir, names := range oldNames {
			if path.Dir(file) == dir || strings.HasPrefix(file, dir+"/") {
				old = append(old, names...)
			}
		}
		if len(old) == 0 {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok { // declared elsewhere, or found where it is declared
				return !isName(sel.X)
			}
			if id, ok := n.(*ast.Ident); ok && id.Name != "" && slices.Contains(old, strings.ToLower(id.Name[:1])+id.Name[1:]) {
				t.Errorf("%s: %s is a name that was replaced", file, id.Name)
			}
			return true
		})
	}
}

func isName(x ast.Expr) bool {
	_, ok := x.(*ast.Ident)
	return ok
}

// oldPlaces are packages and files that were renamed or removed.
var oldPlaces = []string{
	"cmd/coven/speak.go", "cmd/coven/words.go",
	"internal/crash", "internal/plain", "internal/scratch", "internal/screen", "internal/suggest",
}

func TestOldPlaces(t *testing.T) {
	for _, place := range oldPlaces {
		if _, err := os.Stat(place); err == nil {
			t.Errorf("%s has another name now", place)
		}
	}
}

// formerMost matches names of maximums, which begin with max. Deprecated aliases of the
// plugin SDK keep the old prefix for one release.
var formerMost = regexp.MustCompile(`\b[mM]ost[A-Z]\w*`)

func TestMaxNames(t *testing.T) {
	deprecated := []string{"plugins/reviewer/check.go", "plugins/services/services.go", "examples/plugins/testdata/reviewer-formernames/main.go"}
	for _, file := range goFiles(t) {
		if slices.Contains(deprecated, file) {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok && formerMost.MatchString(id.Name) {
				t.Errorf("%s: %s: the name of a maximum begins with max", file, id.Name)
			}
			return true
		})
	}
}

// oldPhrases are replaced in comments, messages and documents: Go's idiom is "reports
// whether".
var oldPhrases = regexp.MustCompile(`\bsays? whether\b|\bfenced yet\b`)

func TestOldPhrases(t *testing.T) {
	files := goFiles(t)
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if phrase := oldPhrases.Find(text); phrase != nil && file != "oldnames_test.go" {
			t.Errorf("%s: %q", file, phrase)
		}
	}
}
