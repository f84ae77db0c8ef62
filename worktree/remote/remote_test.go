package remote

import (
	"strings"
	"testing"

	"github.com/coven-run/coven/worktree/internal/git"
)

func TestSourceOf(t *testing.T) {
	const all = "+refs/heads/*:refs/remotes/origin/*"
	for name, test := range map[string]struct {
		config []string // KEY=VALUE
		want   string
	}{
		"a clone":          {[]string{"remote.origin.url=x", "remote.origin.fetch=" + all}, "origin refs/heads/main refs/remotes/origin/main"},
		"another upstream": {[]string{"remote.up.url=x", "remote.up.fetch=+refs/heads/*:refs/remotes/u/*", "branch.main.remote=up", "branch.main.merge=refs/heads/trunk"}, "up refs/heads/trunk refs/remotes/u/trunk"},
		"a merge of none":  {[]string{"remote.origin.url=x", "remote.origin.fetch=" + all, "branch.main.remote=gone", "branch.main.merge=refs/heads/trunk"}, "origin refs/heads/main refs/remotes/origin/main"},
		"one branch":       {[]string{"remote.origin.url=x", "remote.origin.fetch=+refs/heads/other:refs/remotes/origin/other", "remote.origin.fetch=refs/heads/main:refs/remotes/origin/m"}, "origin refs/heads/main refs/remotes/origin/m"},
		"part of a name":   {[]string{"remote.origin.url=x", "remote.origin.fetch=+refs/heads/ma*n:refs/remotes/origin/ma*n"}, "origin refs/heads/main refs/remotes/origin/main"},
		"not this branch":  {[]string{"remote.origin.url=x", "remote.origin.fetch=+refs/heads/x*:refs/remotes/origin/x*"}, ""},
		"a mirror":         {[]string{"remote.origin.url=x", "remote.origin.fetch=+refs/*:refs/*"}, ""},
		"no remote":        {nil, ""},
	} {
		var settings []git.Setting
		for _, kv := range test.config {
			key, value, _ := strings.Cut(kv, "=")
			settings = append(settings, git.Setting{Key: key, Value: value})
		}
		s, err := sourceOf(settings, "main")
		if got := s.remote + " " + s.ref + " " + s.tracking; (err != nil) != (test.want == "") || err == nil && got != test.want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}
