package coven_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
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
		"rehearsal", "cast", "play", "word", "begunAnew", "litter", "mostResolves", "mostLogged", "mostFindings",
	},
	"internal/usage":     {"ledger"},
	"internal/budget":    {"purse"},
	"internal/cli":       appNames,
	"internal/control":   appNames,
	"internal/project":   appNames,
	"internal/scheduler": appNames,
	"internal/doctor":    append([]string{"mend", "mended"}, appNames...),
	"plugins":            {"hire", "pulse", "feel", "doom", "obituary", "farewell", "member", "greeting", "desk"},
	"grimoires":          {"shelf", "written", "foreign", "mostX"},
	"internal/session":   {"litter", "mailbox", "findLitter"},
	"internal/limits":    {"book"},
	"internal/trust":     {"territory"},
	"internal/terminal":  {"decoded"},
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
