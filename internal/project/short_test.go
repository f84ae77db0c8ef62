package project

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestShortIDs(t *testing.T) {
	for name, c := range map[string]struct{ ids, want []string }{
		"none":                  {nil, nil},
		"a short one":           {[]string{"bd-1"}, []string{"bd-1"}},
		"one begins another":    {[]string{"bd-1", "bd-12"}, []string{"bd-1", "bd-12"}},
		"up to the end of word": {[]string{"p-add-a-version-flag"}, []string{"p-add-a-version"}},
		"as long as necessary":  {[]string{"p-fix-the-parser", "p-fix-the-printer"}, []string{"p-fix-the-parser", "p-fix-the-printer"}},
		"a second attempt":      {[]string{"p-add-a-version", "p-add-a-version-2"}, []string{"p-add-a-version", "p-add-a-version-2"}},
		"the first, long":       {[]string{"p-write-one-poem", "p-write-two-poems-about-go"}, []string{"p-write-one", "p-write-two"}},
		"a very long word":      {[]string{strings.Repeat("x", 80)}, []string{strings.Repeat("x", maxShort)}},
		"long in common":        {[]string{strings.Repeat("x", 80) + "a", strings.Repeat("x", 80) + "b-c"}, []string{strings.Repeat("x", 80) + "a", strings.Repeat("x", 80) + "b"}},
		"not ASCII":             {[]string{"äöüäöüäöü-ß", "äöüäöüäöu"}, []string{"äöüäöüäöü", "äöüäöüäöu"}},
		"twice the same":        {[]string{"p-write-poems", "p-write-poems"}, []string{"p-write-poems", "p-write-poems"}},
	} {
		short := ShortIDs(c.ids)
		var got []string
		for _, id := range c.ids {
			got = append(got, short[id])
			if !strings.HasPrefix(id, short[id]) || short[id] != id && len(beginning(c.ids, short[id])) != 1 && !slices.Contains(got[:len(got)-1], short[id]) {
				t.Errorf("%s: %q does not mean %q", name, short[id], id)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

// Each short ID refers to its task.
func TestShortIDsAreUnique(t *testing.T) {
	var ids []string
	for i := range 300 {
		ids = append(ids, fmt.Sprintf("p-fix-%b-now", i), fmt.Sprintf("bd-%x", i))
	}
	for id, short := range ShortIDs(ids) {
		if slices.Contains(ids, short) {
			if short != id {
				t.Errorf("%q, the short form of %q, is another task", short, id)
			}
			continue
		}
		if got, err := match(short, ids); got != id {
			t.Errorf("%q means %q and not %q: %v", short, got, id, err)
		}
	}
}
