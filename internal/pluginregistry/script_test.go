package pluginregistry

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/coven-run/coven/plugins"
)

// The repository must not control the interpreter of a pinned script.
func TestInterpreters(t *testing.T) {
	b := newBench(t)
	b.o.Path = b.at("repo/tools") + ":relative::" + b.at("bin")
	if err := os.Mkdir(b.at("repo/tools"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"repo/tools/shadowed", "bin/shadowed", "bin/fine", "bin/python3"} {
		b.put(file, "x")
	}
	if err := os.Symlink(b.at("repo/tools/shadowed"), b.at("bin/led")); err != nil {
		t.Fatal(err)
	}
	const theirs = "is inside the repository"
	for line, want := range map[string]string{
		"/bin/sh":                              "",
		" /bin/sh -eu":                         "",
		b.at("bin/fine"):                       "",
		"/usr/bin/env fine":                    "",
		"/usr/bin/env none":                    "",
		"/usr/bin/env -S python3 -u":           "",
		".coven/interp":                        "relative path",
		" \t.coven/interp":                     "relative path",
		"interp":                               "relative path",
		".coven/interp\x00":                    "relative path",
		b.at("repo/tools/shadowed"):            theirs,
		b.at("bin/led"):                        theirs,
		"/usr/bin/env shadowed":                theirs,
		"/usr/bin/env led":                     theirs,
		"/usr/bin/env -S led x":                theirs,
		"/usr/bin/env ./interp":                "relative path",
		"/usr/bin/env " + b.at("repo/tools/x"): theirs,
		"/usr/bin/env":                         "not supported",
		"/usr/bin/env -S":                      "not supported",
		"/usr/bin/env -i fine":                 "not supported",
		"/usr/bin/env -S PATH=/x fine":         "not supported",
		"/usr/bin/env -S 'led'":                "not supported",
	} {
		text := "#!" + line + "\nx\n"
		b.put(projectFile, text)
		b.trust("coven-reviewer-style", text)
		got, err := New(b.o).Resolve(plugins.KindReviewer, "style")
		broken := (*BrokenError)(nil)
		if want == "" && err != nil || want != "" && (!errors.As(err, &broken) || !strings.Contains(broken.Plugin.Detail, want)) {
			t.Errorf("%q: %+v, %v", line, got, err)
		}
	}
	b.put("repo/.coven/plugins/coven-reviewer-program", "\x7fELF")
	b.trust("coven-reviewer-program", "\x7fELF")
	if _, err := New(b.o).Resolve(plugins.KindReviewer, "program"); err != nil {
		t.Error(err)
	}
	b.put("bin/coven-reviewer-mine", "#!interp\n") // the user's own plugin runs in place
	if _, err := New(b.o).Resolve(plugins.KindReviewer, "mine"); err != nil {
		t.Error(err)
	}
}
