package task

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Withdrawn versions of bd are refused by name, and versions that do not know the mode of the database. All others are
// used, also unknown and newer ones.
func TestVersions(t *testing.T) {
	for version, says := range map[string]string{
		"1.0.5":           "corrupts data",
		"v1.0.5":          "corrupts data",
		"1.0.5-18-g1a2b3": "corrupts data",
		"1.1.1":           "retracted",
		"1.2.0":           "retracted",
		"1.2.1":           "only bd 1.3 and later can read",
		"1.0.4":           "mode proxied-server",
		"1.2.2":           "mode proxied-server",
		"1.3.0-rc.1":      "",
		"1.3.1":           "",
		"1.10.5":          "",
		"11.0.5":          "",
		"2.0.0":           "",
		"(devel)":         "",
	} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			s := bdSite(t, "", nil)
			s.bd(t, "create", "a", "--json")
			c := s.cli(t, "FAKEBD_VERSION="+version)
			all, err := c.List(t.Context())
			if says == "" {
				if err != nil || len(all) != 1 {
					t.Errorf("%d tasks, %v", len(all), err)
				}
				return
			}
			refused := (*VersionError)(nil)
			if !errors.As(err, &refused) || refused.Version != version || refused.Program != s.program {
				t.Fatalf("got %v", err)
			}
			for _, word := range []string{s.program, "bd " + version, says, "Install bd 1.3.0", "npm install -g @beads/bd@1.3.0"} {
				if !strings.Contains(err.Error(), word) {
					t.Errorf("%q is not in: %v", word, err)
				}
			}
			if _, again := c.Add(t.Context(), New{Title: "b"}); !errors.Is(again, err) {
				t.Errorf("then: %v", again)
			}
		})
	}
}

// bd is asked for its version once, until its file changes. Only a new answer refuses it.
func TestKnownVersion(t *testing.T) {
	s := bdSite(t, "", nil)
	calls := filepath.Join(t.TempDir(), "calls")
	shim := filepath.Join(t.TempDir(), BD)
	install := func(version string) {
		t.Helper()
		script := "#!/bin/sh\necho $1 >>" + calls + "\n[ $1 = version ] && echo '{\"version\":\"" + version + "\"}' && exit\nexec " + s.program + ` "$@"` + "\n"
		if err := os.WriteFile(shim, []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	locks := t.TempDir()
	open := func() *CLI {
		t.Helper()
		tracker, err := Open(Options{
			Dir: s.dir, MainCheckout: s.dir, LockDir: locks, Getenv: environment(), Environ: s.env,
			LookPath: func(string) (string, error) { return shim, nil },
		})
		if err != nil {
			t.Fatal(err)
		}
		return tracker.(*CLI)
	}
	asked := func() int {
		text, _ := os.ReadFile(calls)
		return strings.Count(string(text), "version\n")
	}
	for i, step := range []struct {
		version string
		refused bool
		asked   int // in total
	}{{"1.3.0", false, 1}, {"", false, 1}, {"1.0.5-installed", true, 2}, {"", true, 3}, {"1.3.1-newer", false, 4}, {"", false, 4}} {
		if step.version != "" {
			install(step.version)
		}
		_, err := open().List(t.Context())
		if refused := errors.As(err, new(*VersionError)); refused != step.refused || !refused && err != nil || asked() != step.asked {
			t.Errorf("step %d: %v, asked %d times", i, err, asked())
		}
	}
	if err := os.WriteFile(filepath.Join(locks, "bd-version.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if version, _, err := open().Version(t.Context()); version != "1.3.1-newer" || err != nil {
		t.Errorf("damaged: %q, %v", version, err)
	}
}

// An older bd works on the databases that it has made.
func TestOlderVersion(t *testing.T) {
	s := bdSite(t, "", nil, "FAKEBD_VERSION=1.0.4")
	c := s.cli(t)
	a := add(t, c, New{Title: "a"})
	if ready, err := c.Ready(t.Context()); err != nil || ids(ready) != a.ID {
		t.Errorf("ready: %s, %v", ids(ready), err)
	}
	if version, outdated, err := c.Version(t.Context()); version != "1.0.4" || !outdated || err != nil {
		t.Errorf("got %q, %v, %v", version, outdated, err)
	}
}

// A person releases and closes tasks that a session has claimed, also where bd asks for --force.
func TestPersonOverrulesClaim(t *testing.T) {
	for _, version := range []string{"1.0.4", "1.3.0"} {
		t.Run(version, func(t *testing.T) {
			s := bdSite(t, "", nil, "FAKEBD_VERSION="+version)
			c := s.cli(t)
			a, b := add(t, c, New{Title: "a"}), add(t, c, New{Title: "b"})
			for _, one := range []Task{a, b} {
				if _, err := c.Claim(t.Context(), one.ID, "coven/host/1"); err != nil {
					t.Fatal(err)
				}
			}
			s.bd(t, "dep", "add", b.ID, a.ID)
			got, err := c.Close(t.Context(), b.ID, "", "landed")
			is(t, c, got, err, Task{Status: StatusClosed, Assignee: "coven/host/1", CloseReason: "landed"})
			got, err = c.Release(t.Context(), a.ID, "", "given up")
			is(t, c, got, err, Task{Status: StatusOpen, Notes: "given up"})
		})
	}
}

// An empty list is an error if the .beads directory has tasks elsewhere.
func TestEmptyList(t *testing.T) {
	for name, test := range map[string]struct {
		files   map[string]string // below .beads
		version string
		says    string
	}{
		"new":               {},
		"export":            {files: map[string]string{"issues.jsonl": `{"id":"t-1","title":"a","status":"open"}` + "\n"}, says: "its issues.jsonl has 1 task"},
		"export, deleted":   {files: map[string]string{"issues.jsonl": `{"id":"t-1","title":"a","status":"tombstone"}` + "\n"}},
		"export, damaged":   {files: map[string]string{"issues.jsonl": "{\n"}},
		"embedded beside":   {files: map[string]string{"embeddeddolt/t/.dolt/x": ""}, says: "its directory embeddeddolt has another database"},
		"own database":      {files: map[string]string{"dolt/t/.dolt/x": ""}},
		"unknown older bd":  {version: "dev", says: "its directory embeddeddolt has another database"},
		"server beside 1.0": {version: "1.0.4 everywhere", files: map[string]string{"dolt/t/.dolt/x": ""}, says: "its directory dolt has another database"},
	} {
		t.Run(name, func(t *testing.T) {
			var init []string
			version, everywhere := strings.CutSuffix(test.version, " everywhere")
			if everywhere {
				init = append(init, "FAKEBD_VERSION="+version)
			}
			s := bdSite(t, "", nil, init...)
			for file, text := range test.files {
				path := filepath.Join(s.dir, directory, file)
				if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
					t.Fatal(err)
				}
			}
			c := s.cli(t, "FAKEBD_VERSION="+version)
			_, listed := c.List(t.Context())
			_, ready := c.Ready(t.Context())
			for _, err := range []error{listed, ready} {
				empty := (*EmptyError)(nil)
				if test.says == "" && err != nil || test.says != "" && (!errors.As(err, &empty) || !strings.Contains(err.Error(), test.says)) {
					t.Errorf("got %v", err)
				}
			}
			if test.says != "" {
				return
			}
			add(t, c, New{Title: "a"})
			if ready, err := c.Ready(t.Context()); err != nil || len(ready) != 1 {
				t.Errorf("then: %v, %v", ready, err)
			}
		})
	}
}

// The command that replaces a bd depends on how it was installed.
func TestUpgrade(t *testing.T) {
	for program, want := range map[string]string{
		"/usr/local/bin/bd":                               "npm install -g @beads/bd@1.3.0",
		"/home/x/.linuxbrew/Cellar/beads/1.0.5/bin/bd":    "brew upgrade beads",
		"/home/x/go/bin/bd":                               "go install github.com/steveyegge/beads/cmd/bd@v1.3.0",
		"/usr/lib/node_modules/@beads/bd/bin/bd.js":       "npm install -g @beads/bd@1.3.0",
		"/nix/store/0c0a-beads-1.0.5/bin/bd":              "npm install -g @beads/bd@1.3.0",
		filepath.Join(linkTo(t, "Cellar/beads/bd"), "bd"): "brew upgrade beads",
	} {
		if got := upgrade(program); got != want {
			t.Errorf("%s: %s, want %s", program, got, want)
		}
	}
}

// linkTo returns a directory with a link bd to a file.
func linkTo(t *testing.T, file string) string {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, file)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, nil, 0o755), os.Symlink(path, filepath.Join(dir, "bd"))); err != nil {
		t.Fatal(err)
	}
	return dir
}

// The tested version is the one that make real-bd installs.
func TestTestedVersion(t *testing.T) {
	pins, err := os.ReadFile("../../.ci/pins")
	if err != nil || !strings.Contains(string(pins), "\nBEADS="+TestedVersion+"\n") {
		t.Errorf("BEADS in .ci/pins is not %s: %v", TestedVersion, err)
	}
}
