package trust

import (
	"os"
	"path/filepath"
	"testing"
)

func TestTerritoryHolds(t *testing.T) {
	top := t.TempDir()
	at := func(name string) string { return filepath.Join(top, name) }
	for _, dir := range []string{"repo/bin", "repo/.git", "side", "else/deep"} {
		if err := os.MkdirAll(at(dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{"repo/bin/x", "else/x"} {
		if err := os.WriteFile(at(file), []byte("x"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{
		"else/in":           at("repo/bin/x"),
		"else/relative":     "../repo/bin/x",
		"repo/out":          "../else",
		"else/through":      "../repo/out/x",
		"else/deep/up":      "../../repo",
		"else/deep/around":  "up/../else/x", // up/.. is the directory of repo
		"else/missing":      "../repo/bin/none",
		"else/nowhere":      at("none/x"),
		"else/loop":         "loop",
		"else/fine":         "x",
		"alias":             "repo",
		"else/by-the-alias": "../alias/bin/x",
	} {
		if err := os.Symlink(to, at(link)); err != nil {
			t.Fatal(err)
		}
	}
	where := NewUntrustedPaths(at("repo"), at("side"), at("not there"))
	for path, want := range map[string]bool{
		at("repo"):              true,
		at("repo/bin/x"):        true,
		at("repo/none/at/all"):  true,
		at("repository"):        false,
		at("side/x"):            true,
		at("else/x"):            false,
		at("else/none/y"):       false,
		at("else/fine"):         false,
		at("else/in"):           true,
		at("else/relative"):     true,
		at("else/through"):      true,
		at("else/deep/around"):  true,
		at("else/missing"):      true,
		at("else/nowhere"):      false,
		at("else/loop"):         true,
		at("alias/bin/x"):       true,
		at("else/by-the-alias"): true,
		at("else/x/below"):      true, // it cannot be resolved
		top + "/else/../repo/x": true,
		top + "/repo/../else/x": true, // it leads through
		"repo/x":                true,
		"":                      true,
	} {
		if got := where.Contains(path); got != want {
			t.Errorf("%s: %v", path, got)
		}
	}
	if !NewUntrustedPaths("/").Contains(at("else/x")) {
		t.Error("/ does not hold what is below it")
	}
	if NewUntrustedPaths().Contains(at("else/x")) {
		t.Error("no directory holds something")
	}
}
