package permission

import (
	"fmt"
	"strings"
	"testing"
)

// The narrowest rules for refused requests, with their effect. Each one allows its requests.
func TestPropose(t *testing.T) {
	const root = "/w"
	write := func(file string) Request { return Request{Permission: FileWrite, Path: root + file} }
	run := func(command string) Request { return Request{Permission: BashExecute, Command: command} }
	deny := func(name Name, pattern string) Rule { return Rule{name, pattern, Deny} }
	few := []Rule{{CodeSearch, Everything, Allow}}
	for name, c := range map[string]struct {
		own     []Rule // nil for coven's default rules
		asks    []Name
		user    []Rule
		refused []Request
		want    string // rules with allows+helps, then requests that no rule allows
	}{
		"a file":              {few, nil, nil, []Request{write("/a"), write("/a")}, "allow file.write /a 2+0"},
		"odd names":           {few, nil, nil, []Request{write("/a*[b]{c}?")}, `allow file.write /a\*\[b\]\{c\}\? 1+0`},
		"similar files":       {few, nil, nil, []Request{write("/d/a.go"), write("/d/b.go"), write("/d/c.go"), write("/d/c.md")}, "allow file.write /d/*.go 3+0; allow file.write /d/c.md 1+0"},
		"files at the top":    {few, nil, nil, []Request{write("/a.go"), write("/b.go"), write("/c.go")}, "allow file.write /a.go 1+0; allow file.write /b.go 1+0; allow file.write /c.go 1+0"},
		"a command":           {few, nil, nil, []Request{run("git push")}, "allow bash.execute git push 1+0"},
		"one of two commands": {nil, nil, []Rule{deny(BashExecute, "git push *")}, []Request{run("ls; git push x")}, "allow bash.execute git push x 1+0 over deny bash.execute git push *"},
		"two commands":        {few, nil, nil, []Request{run("a; b"), run("a")}, "allow bash.execute a 1+1; allow bash.execute b 0+1"},
		"similar commands":    {few, nil, nil, []Request{run("git push a"), run("git push b"), run("git push c")}, "allow bash.execute git push * 3+0"},
		"a redirection":       {few, nil, nil, []Request{run("ls >out")}, "allow bash.execute ls 0+1; allow file.write /out 0+1"},
		"allowed meanwhile":   {few, nil, []Rule{{FileWrite, "/a", Allow}}, []Request{write("/a"), write("/b")}, "allow file.write /b 1+0"},
		"a host":              {few, nil, nil, []Request{{Permission: NetFetch, Subject: "a.example"}}, "allow net.fetch a.example 1+0"},
		"an approval":         {nil, []Name{FileWrite}, nil, []Request{write("/a")}, "no: FilesystemWrite of a requires approval"},
		"allowed by now":      {nil, nil, nil, []Request{write("/a"), run("a; b")}, ""},
		"outside":             {few, nil, nil, []Request{{Permission: FileWrite, Path: "/x"}}, "no: /x is outside the worktree"},
		"of git":              {few, nil, nil, []Request{write("/.git/config")}, "no: .git/config belongs to git"},
		"of coven":            {few, nil, nil, []Request{write("/.coven/config.yaml")}, "no: .coven/config.yaml belongs to coven"},
		"a shell":             {few, nil, nil, []Request{run("sh -c x")}, "no: sh runs other commands"},
		"a variable":          {few, nil, nil, []Request{run("rm $x")}, "no: a rule for it would allow other commands"},
		"a glob":              {few, nil, nil, []Request{run("rm *")}, "no: a rule for it would allow other commands"},
		"a quoted glob":       {few, nil, nil, []Request{run("rm '*'")}, "no: a rule for it would allow other commands"},
		"no command":          {few, nil, nil, []Request{run("a (")}, "no: the shell command cannot be read"},
	} {
		var refused []Refusal
		for _, r := range c.refused {
			if n := len(refused); n > 0 && refused[n-1].Request == r {
				refused[n-1].Times++
				continue
			}
			refused = append(refused, Refusal{Request: r, Agent: "a", Own: c.own, Asks: c.asks, Times: 1})
		}
		proposals, none := Propose(root, c.user, refused)
		var got []string
		for _, p := range proposals {
			text := fmt.Sprintf("%s %d+%d", p.Rule, p.Allows, p.Helps)
			if p.Overrides != nil {
				text += " over " + p.Overrides.String()
			}
			got = append(got, text)
		}
		for _, h := range none {
			got = append(got, "no: "+h.Reason)
		}
		if text := strings.Join(got, "; "); text != c.want && (len(none) == 0 || !strings.HasPrefix(text, c.want)) {
			t.Errorf("%s:\n got %s\nwant %s", name, text, c.want)
		}
	}
}
