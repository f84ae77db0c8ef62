package worktree

import (
	"testing"

	"github.com/coven-run/coven/worktree/remote"
)

func TestRemote(t *testing.T) {
	for name, test := range map[string]struct {
		config [][]string
		want   string
	}{
		"none":       {nil, ""},
		"only":       {[][]string{{"remote.up.url", "x"}}, "up"},
		"origin":     {[][]string{{"remote.up.url", "x"}, {"remote.origin.url", "x"}}, "origin"},
		"upstream":   {[][]string{{"remote.up.url", "x"}, {"remote.origin.url", "x"}, {"branch.main.remote", "up"}}, "up"},
		"of another": {[][]string{{"remote.up.url", "x"}, {"remote.origin.url", "x"}, {"branch.other.remote", "up"}}, "origin"},
		"gone":       {[][]string{{"remote.up.url", "x"}, {"branch.main.remote", "gone"}}, "up"},
		"itself":     {[][]string{{"branch.main.remote", "."}}, ""},
		"several":    {[][]string{{"remote.a.url", "x"}, {"remote.b.url", "x"}}, ""},
		"with a dot": {[][]string{{"remote.my.fork.url", "x"}}, "my.fork"},
	} {
		t.Run(name, func(t *testing.T) {
			r := sample(t)
			for _, setting := range test.config {
				gitIn(t, r.Root, "config", setting[0], setting[1])
			}
			if got, err := remote.Of(t.Context(), r, "main"); err != nil || got != test.want {
				t.Errorf("%q, %v; want %q", got, err, test.want)
			}
		})
	}
}
