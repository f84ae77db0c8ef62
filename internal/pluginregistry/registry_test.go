package pluginregistry

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/coven-run/coven/internal/project/trust"
	"github.com/coven-run/coven/plugins"
)

// bench is the environment of a test: a repository, a user, and a PATH.
type bench struct {
	t   *testing.T
	top string
	env map[string]string
	o   Options
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{t: t, top: t.TempDir(), env: map[string]string{}}
	for _, dir := range []string{"repo/.git", "repo/.coven/plugins", "conf/plugins", "bin"} {
		if err := os.MkdirAll(b.at(dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	where := trust.NewUntrustedPaths(b.at("repo"))
	b.o = Options{
		Root: b.at("repo"), UntrustedPaths: where, UserDir: b.at("conf"), CacheDir: b.at("cache/coven"),
		Path:    b.at("bin"),
		Shipped: []Shipped{{Kind: plugins.KindProvider, Name: "claude", Argv: []string{"/coven", "plugin", "provider", "claude"}}},
		Store: trust.New(trust.Options{
			UserDir: b.at("conf"), GitDir: b.at("repo/.git"), UntrustedPaths: where, Getenv: func(key string) string { return b.env[key] },
		}),
	}
	return b
}

func (b *bench) at(name string) string { return filepath.Join(b.top, name) }

func script(says string) string { return "#!/bin/sh\necho " + says + "\n" }

// put creates a plugin atomically: open handles keep the old file.
func (b *bench) put(name, text string) {
	b.t.Helper()
	if err := os.WriteFile(b.at(name)+".new", []byte(text), 0o755); err != nil {
		b.t.Fatal(err)
	}
	if err := os.Rename(b.at(name)+".new", b.at(name)); err != nil {
		b.t.Fatal(err)
	}
}

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

func (b *bench) trust(id, text string) {
	b.t.Helper()
	if err := b.o.Store.Add(trust.Item{Kind: trust.KindPlugin, Name: id, SHA256: hashOf(text)}); err != nil {
		b.t.Fatal(err)
	}
}

// says runs a binary and returns its output.
func (b *bench) says(binary plugins.Binary) string {
	b.t.Helper()
	out, err := exec.Command(binary.Argv[0], binary.Argv[1:]...).CombinedOutput()
	if err != nil {
		b.t.Fatalf("%v: %v\n%s", binary.Argv, err, out)
	}
	return strings.TrimSpace(string(out))
}

const projectFile = "repo/.coven/plugins/coven-reviewer-style"

func TestResolvePlaces(t *testing.T) {
	b := newBench(t)
	r := New(b.o)
	if got, err := r.Resolve(plugins.KindProvider, "claude"); err != nil || !got.BuiltIn || got.Argv[0] != "/coven" || got.SHA256 != nil {
		t.Errorf("%+v, %v", got, err)
	}
	b.put("bin/coven-provider-claude", script("path"))
	if got, err := r.Resolve(plugins.KindProvider, "claude"); err != nil || got.BuiltIn || got.Argv[0] != b.at("bin/coven-provider-claude") || got.SHA256 != nil {
		t.Errorf("%+v, %v", got, err)
	}
	b.put("conf/plugins/coven-provider-claude", script("user"))
	if got, err := r.Resolve(plugins.KindProvider, "claude"); err != nil || b.says(got) != "user" {
		t.Errorf("%+v, %v", got, err)
	}
	b.put("repo/.coven/plugins/coven-provider-claude", script("project"))
	if got, err := r.Resolve(plugins.KindProvider, "claude"); !errors.As(err, new(*UntrustedError)) {
		t.Errorf("%+v, %v", got, err)
	}
	// A plugin that cannot be run hides the others, too.
	if err := os.Chmod(b.at("repo/.coven/plugins/coven-provider-claude"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got, err := r.Resolve(plugins.KindProvider, "claude"); !errors.As(err, new(*BrokenError)) {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := os.Lstat(b.o.CacheDir); err == nil {
		t.Error("a copy was made of something that is not pinned")
	}
}

func TestUnknown(t *testing.T) {
	b := newBench(t)
	b.put("bin/coven-reviewer-style", script("x"))
	r := New(b.o)
	for _, c := range []struct {
		kind       plugins.Kind
		name, want string
	}{
		{plugins.KindProvider, "cluade", `unknown plugin: no provider "cluade" (did you mean "claude"?)`},
		{plugins.KindProvider, "style", `unknown plugin: no provider "style" (known: claude)`},
		{plugins.KindReviewer, "stile", `did you mean "style"?`},
		{plugins.KindModel, "x", "(known: none)"},
		{plugins.KindProvider, "../claude", "no provider"},
		{plugins.KindProvider, "", "no provider"},
		{"providers", "claude", "providers is not a plugin kind"},
	} {
		_, err := r.Resolve(c.kind, c.name)
		if !errors.Is(err, plugins.ErrUnknown) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %s: %v", c.kind, c.name, err)
		}
	}
}

// A trusted plugin runs from a copy, so that later changes to the file have no effect.
func TestResolveTrusted(t *testing.T) {
	b := newBench(t)
	b.put(projectFile, script("good"))
	r := New(b.o)
	untrusted := (*UntrustedError)(nil)
	if _, err := r.Resolve(plugins.KindReviewer, "style"); !errors.As(err, &untrusted) || untrusted.Plugin.SHA256 != hashOf(script("good")) || untrusted.Plugin.Lines != 2 {
		t.Fatalf("%v", err)
	}
	b.trust("coven-reviewer-style", script("good"))
	binary, err := r.Resolve(plugins.KindReviewer, "style")
	if err != nil || hex.EncodeToString(binary.SHA256) != hashOf(script("good")) {
		t.Fatalf("%+v, %v", binary, err)
	}
	b.put(projectFile, script("evil"))
	if got := b.says(binary); got != "good" {
		t.Errorf("it says %s", got)
	}
	if _, err := r.Resolve(plugins.KindReviewer, "style"); !errors.As(err, &untrusted) || untrusted.Plugin.State != Changed {
		t.Errorf("%v", err)
	}
	b.put(projectFile, script("good"))
	if again, err := r.Resolve(plugins.KindReviewer, "style"); err != nil || again.Argv[0] != binary.Argv[0] {
		t.Errorf("%+v, %v", again, err)
	}
}

// If the file changes between assessing and copying, the copy is refused.
func TestCopyOfOtherBytes(t *testing.T) {
	b := newBench(t)
	b.put(projectFile, script("good"))
	b.trust("coven-reviewer-style", script("good"))
	r := New(b.o)
	p, err := r.Find(plugins.KindReviewer, "style")
	if err != nil || p.State != Trusted {
		t.Fatalf("%+v, %v", p, err)
	}
	b.put(projectFile, script("evil"))
	if got, err := r.copyPinned(p); !errors.As(err, new(*UntrustedError)) {
		t.Errorf("%+v, %v", got, err)
	}
	if left, _ := filepath.Glob(b.at("cache/coven/plugins/*/*")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// A file that changes constantly either runs with the trusted content or is refused.
func TestResolveRace(t *testing.T) {
	b := newBench(t)
	good := script("good")
	evil := script("evil") + strings.Repeat("# padding\n", 100_000)
	b.put(projectFile, good)
	b.trust("coven-reviewer-style", good)
	stop := make(chan struct{})
	var writer sync.WaitGroup
	writer.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				b.put(projectFile, []string{good, evil}[i%2])
			}
		}
	})
	defer func() { close(stop); writer.Wait() }()
	ran, refused := 0, 0
	for i := 0; ran+refused < 100 || ran == 0 || refused == 0; i++ {
		r := b.o
		r.CacheDir = b.at(fmt.Sprintf("cache%d/coven", i)) // each makes its own copy
		binary, err := New(r).Resolve(plugins.KindReviewer, "style")
		switch {
		case err == nil:
			text, err := os.ReadFile(binary.Argv[0])
			if err != nil || string(text) != good {
				t.Fatalf("%d bytes, %v", len(text), err)
			}
			ran++
		case errors.As(err, new(*UntrustedError)):
			refused++
		default:
			t.Fatal(err)
		}
	}
}

// A copy is always checked, and replaced if it is damaged.
func TestCopyIsDamaged(t *testing.T) {
	b := newBench(t)
	b.put(projectFile, script("good"))
	b.trust("coven-reviewer-style", script("good"))
	r := New(b.o)
	binary, err := r.Resolve(plugins.KindReviewer, "style")
	if err != nil {
		t.Fatal(err)
	}
	file := binary.Argv[0]
	rewrite := func(text string, mode os.FileMode) func() error {
		return func() error {
			return errors.Join(os.Remove(file), os.WriteFile(file, []byte(text), mode), os.Chmod(file, mode))
		}
	}
	for name, damage := range map[string]func() error{
		"other bytes": rewrite(script("evil"), 0o500),
		"empty":       rewrite("", 0o500),
		"writable":    rewrite(script("good"), 0o777),
		"a link":      func() error { return errors.Join(os.Remove(file), os.Symlink(b.at(projectFile), file)) },
		"gone":        func() error { return os.Remove(file) },
		"open dir":    func() error { return os.Chmod(filepath.Dir(file), 0o777) },
	} {
		if err := damage(); err != nil {
			t.Fatal(err)
		}
		again, err := r.Resolve(plugins.KindReviewer, "style")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		info, err := os.Lstat(again.Argv[0])
		if err != nil || info.Mode() != 0o500 || b.says(again) != "good" {
			t.Errorf("%s: %v, %v", name, info, err)
		}
		if dir, err := os.Stat(filepath.Dir(file)); err != nil || dir.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v, %v", name, dir, err)
		}
	}
}

func TestCacheRefused(t *testing.T) {
	b := newBench(t)
	b.put(projectFile, script("good"))
	b.trust("coven-reviewer-style", script("good"))
	if err := os.Symlink(b.at("repo"), b.at("link")); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(b.at("third/elsewhere"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("elsewhere", b.at("third/plugins")); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{b.at("repo/cache"), b.at("link/cache"), "", "relative", b.at("third")} {
		b.o.CacheDir = dir
		if got, err := New(b.o).Resolve(plugins.KindReviewer, "style"); !errors.As(err, new(*CacheError)) {
			t.Errorf("%q: %+v, %v", dir, got, err)
		}
	}
}

func TestLockHoldsEverywhere(t *testing.T) {
	for _, file := range []string{"bin/coven-reviewer-style", "conf/plugins/coven-reviewer-style", projectFile} {
		b := newBench(t)
		b.put(file, script("good"))
		lock := Lock{"coven-reviewer-style": {"linux/amd64": hashA, "any": hashOf(script("good"))}}
		if err := lock.Write(b.o.Root); err != nil {
			t.Fatal(err)
		}
		b.trust("coven-reviewer-style", script("good"))
		r := New(b.o)
		binary, err := r.Resolve(plugins.KindReviewer, "style")
		if err != nil || !strings.HasPrefix(binary.Argv[0], b.o.CacheDir) || b.says(binary) != "good" {
			t.Errorf("%s: %+v, %v", file, binary, err)
		}
		b.put(file, script("evil"))
		b.trust("coven-reviewer-style", script("evil"))
		for _, everything := range []string{"", "1"} {
			b.env[trust.Variable] = everything
			if got, err := r.Resolve(plugins.KindReviewer, "style"); !errors.As(err, new(*MismatchError)) {
				t.Errorf("%s, %s: %+v, %v", file, everything, got, err)
			}
		}
	}
}

func TestTrustEverything(t *testing.T) {
	b := newBench(t)
	b.put(projectFile, script("any"))
	b.env[trust.Variable] = "1"
	if got, err := New(b.o).Resolve(plugins.KindReviewer, "style"); err != nil || b.says(got) != "any" {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := os.Lstat(b.at("conf/trust.json")); err == nil {
		t.Error("it was written down")
	}
}

func TestListHidden(t *testing.T) {
	b := newBench(t)
	b.put(projectFile, script("a"))
	b.put("conf/plugins/coven-reviewer-style", script("b"))
	b.put("bin/coven-reviewer-style", script("c"))
	b.o.Path = strings.Join([]string{"relative", "", b.at("bin"), b.at("bin"), b.at("conf/plugins"), b.at("none")}, ":")
	all, err := New(b.o).List()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range all {
		got = append(got, fmt.Sprintf("%s %s %s", p.From, p.Name, p.State))
	}
	if want := "built in claude built in, project style not trusted, user style hidden, PATH style hidden"; strings.Join(got, ", ") != want {
		t.Error(got)
	}
	if all[2].HiddenBy != b.at(projectFile) || all[2].SHA256 != "" {
		t.Errorf("%+v", all[2])
	}
}

func TestScripts(t *testing.T) {
	for _, c := range []struct {
		text  string
		lines int
	}{
		{"#!/bin/sh\necho", 2},
		{"#!/bin/sh\necho\n", 2},
		{"#!/bin/sh", 1},
		{"#!/bin/sh\n" + strings.Repeat("é\n", 100_000), 100_001},
		{"#!/bin/sh\n\x00", 0},
		{"\x7fELF\n", 0},
		{"", 0},
	} {
		b := newBench(t)
		b.put(projectFile, c.text)
		p, err := New(b.o).Find(plugins.KindReviewer, "style")
		if err != nil || p.Lines != c.lines || p.Size != int64(len(c.text)) || p.SHA256 != hashOf(c.text) {
			t.Errorf("%.20q: %d lines, %d bytes, %v", c.text, p.Lines, p.Size, err)
		}
		if strings.ContainsRune(p.Head, '\uFFFD') || (p.Head == "") != (c.lines == 0) {
			t.Errorf("%.20q: %q", c.text, p.Head)
		}
	}
}
