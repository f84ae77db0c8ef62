package git

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestConfiguredIsCurrent compares the answers of a Store and of git after each change of the
// configuration.
func TestConfiguredIsCurrent(t *testing.T) {
	home, dir := t.TempDir(), t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", "")
	shell(t, dir, "git init -q --bare r.git")
	at := filepath.Join(dir, "r.git")
	known := Repo{Dir: at, Store: OpenStore(at)}
	patterns := []string{`^core\.hookspath$`, `^(user|author|committer)\.(name|email)$`, `^filter\..*\.(clean|smudge|process)$`, `^nothing$`}
	files := map[string]string{"repository": filepath.Join(at, "config"), "user": filepath.Join(home, ".gitconfig"), "xdg": filepath.Join(home, ".config/git/config")}
	if err := os.MkdirAll(filepath.Dir(files["xdg"]), 0o755); err != nil {
		t.Fatal(err)
	}
	settled := time.Now().Add(-time.Hour)
	compare := func(when string) {
		t.Helper()
		for _, old := range []bool{false, true} { // settings in files that have just changed are returned, but not cached
			if old {
				settled = settled.Add(time.Second)
				for _, file := range files {
					_ = os.Chtimes(file, settled, settled) // it need not exist
				}
			}
			for range 2 {
				for _, pattern := range patterns {
					for _, asPath := range []bool{false, true} {
						want, wantErr := Repo{Dir: at}.Configured(t.Context(), pattern, asPath)
						got, err := known.Configured(t.Context(), pattern, asPath)
						if fmt.Sprint(got, err == nil) != fmt.Sprint(want, wantErr == nil) {
							t.Errorf("%s, %s, %v: got %q, %v, want %q, %v", when, pattern, asPath, got, err, want, wantErr)
						}
					}
				}
				for _, key := range []string{"commit.gpgSign", "core.bare"} {
					want, wantErr := Repo{Dir: at}.Enabled(t.Context(), key)
					got, err := known.Enabled(t.Context(), key)
					if got != want || (err == nil) != (wantErr == nil) {
						t.Errorf("%s, %s: got %v, %v, want %v, %v", when, key, got, err, want, wantErr)
					}
				}
			}
		}
	}
	compare("at first")
	for _, change := range []struct{ file, text string }{
		{"user", "[user]\n name = A\n[commit]\n gpgSign = Yes\n"},
		{"user", "[user]\n name = B\n[commit]\n gpgSign = Yes\n"}, // of the same size
		{"xdg", "[core]\n hooksPath = ~/hooks\n[user]\n email = b@example.org\n"},
		{"user", "[core]\n hooksPath = ~\n[commit]\n gpgSign\n"},
		{"user", "[core]\n hooksPath = relative\n[commit]\n gpgSign = 2\n"},
		{"user", "[core]\n hooksPath\n"},
		{"user", "[core]\n hooksPath = \"\"\n[commit]\n gpgSign = maybe\n"},
		{"user", "[filter \"A b.c\"]\n clean = \"x\\ny\"\n smudge = \n"},
		{"user", "[include]\n path = more\n"},
		{"user", "[includeIf \"onbranch:main\"]\n path = more\n"},
	} {
		if err := os.WriteFile(files[change.file], []byte(change.text), 0o644); err != nil {
			t.Fatal(err)
		}
		compare(change.text)
	}
	if err := os.WriteFile(filepath.Join(home, "more"), []byte("[user]\n name = included\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	compare("an included file")
	shell(t, at, "git config filter.x.clean cat")
	compare("the repository's")
	t.Setenv("GIT_CONFIG_COUNT", "2")
	t.Setenv("GIT_CONFIG_KEY_0", "user.name")
	t.Setenv("GIT_CONFIG_VALUE_0", "of the variables")
	t.Setenv("GIT_CONFIG_KEY_1", "core.hooksPath")
	t.Setenv("GIT_CONFIG_VALUE_1", "~/theirs")
	compare("variables")
	if found, err := known.Configured(t.Context(), `^user\.name$`, false); err != nil || len(found) == 0 || found[len(found)-1].Value != "of the variables" {
		t.Errorf("%v, %v", found, err)
	}
	if hooks, err := known.Line(t.Context(), "config", "core.hooksPath"); err != nil || hooks != "/dev/null" {
		t.Errorf("a variable of the user overrides a neutral setting: %s, %v", hooks, err)
	}
	t.Setenv("GIT_CONFIG_COUNT", "many") // git refuses it
	if _, err := known.Line(t.Context(), "rev-parse", "--git-dir"); err != nil {
		t.Error(err)
	}
	t.Setenv("GIT_CONFIG_COUNT", "")
	for _, file := range []string{"user", "xdg"} {
		if err := os.Remove(files[file]); err != nil {
			t.Fatal(err)
		}
		compare("without " + file)
	}
}

// TestConfiguredIsKept checks that git is run only once for settled files, which cannot change without a
// new modification time.
func TestConfiguredIsKept(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	dir := t.TempDir()
	shell(t, dir, "git init -q --bare r.git && git -C r.git config user.name kept")
	at := filepath.Join(dir, "r.git")
	now := time.Now().Truncate(time.Second).Add(time.Second / 2)
	for _, c := range []struct {
		changed time.Time
		kept    bool
	}{
		{now.Truncate(time.Second).Add(-time.Hour), true},
		{now.Truncate(time.Second).Add(-time.Second), false}, // timestamps may have a resolution of two seconds
		{now.Truncate(time.Second).Add(-2 * time.Second), true},
		{now.Add(-99 * time.Millisecond), false},
		{now.Add(-101 * time.Millisecond), true},
		{now.Add(time.Minute), false}, // the clock was set back
	} {
		if err := os.Chtimes(filepath.Join(at, "config"), c.changed, c.changed); err != nil {
			t.Fatal(err)
		}
		r := Repo{Dir: at, Store: OpenStore(at)}
		r.Store.config.now = func() time.Time { return now }
		if _, err := r.Configured(t.Context(), `^user\.name$`, false); err != nil {
			t.Fatal(err)
		}
		program := os.Getenv("PATH")
		t.Setenv("PATH", "")
		found, err := r.Configured(t.Context(), `^user\.name$`, false)
		t.Setenv("PATH", program)
		if kept := err == nil && len(found) == 1 && found[0].Value == "kept"; kept != c.kept {
			t.Errorf("changed %v ago: kept %v: %v", now.Sub(c.changed), kept, err)
		}
	}
}
