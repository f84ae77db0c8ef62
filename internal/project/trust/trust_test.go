package trust

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	hashA = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	hashB = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
)

// fresh returns the store of a new user, and its options.
func fresh(t *testing.T) (*Store, Options) {
	t.Helper()
	top := t.TempDir()
	o := Options{
		UserDir: filepath.Join(top, "conf", "coven"), GitDir: filepath.Join(top, "repo", ".git"),
		Getenv: func(string) string { return "" },
	}
	if err := os.MkdirAll(o.GitDir, 0o755); err != nil {
		t.Fatal(err)
	}
	o.UntrustedPaths = NewUntrustedPaths(filepath.Join(top, "repo"))
	return New(o), o
}

func item(name, hash string) Item {
	return Item{Kind: KindPlugin, Name: name, What: "bin/" + name, SHA256: hash, Since: time.Unix(1, 0).UTC()}
}

func TestStoreKeepsItems(t *testing.T) {
	s, o := fresh(t)
	if items, err := s.Items(); err != nil || len(items) != 0 {
		t.Fatalf("%v, %v", items, err)
	}
	if _, err := os.Lstat(o.UserDir); err == nil {
		t.Error("looking made a directory")
	}
	other := Item{Kind: "setup", Name: "x", What: "npm ci", SHA256: hashB}
	if err := s.Add(item("y", hashA), item("x", hashA), other); err != nil {
		t.Fatal(err)
	}
	if err := s.Add(item("x", hashB)); err != nil {
		t.Fatal(err)
	}
	items, err := New(o).Items()
	if want := []Item{item("x", hashB), item("y", hashA), other}; err != nil || fmt.Sprint(items) != fmt.Sprint(want) {
		t.Errorf("%v, %v", items, err)
	}
	if it, known, err := s.Find("setup", "x"); err != nil || !known || it != other {
		t.Errorf("%v, %v, %v", it, known, err)
	}
	if _, known, err := s.Find("mcp", "x"); err != nil || known {
		t.Errorf("%v, %v", known, err)
	}
	info, err := os.Stat(filepath.Join(o.UserDir, "trust.json"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	removed, err := s.Remove(func(it Item) bool { return it.Name == "x" })
	if err != nil || len(removed) != 2 {
		t.Errorf("%v, %v", removed, err)
	}
	if items, err := s.Items(); err != nil || len(items) != 1 {
		t.Errorf("%v, %v", items, err)
	}
}

// Each repository has its own items, regardless of the path by which it is opened.
func TestStoreByRepository(t *testing.T) {
	s, o := fresh(t)
	if err := s.Add(item("x", hashA)); err != nil {
		t.Fatal(err)
	}
	alias := filepath.Join(filepath.Dir(o.UserDir), "alias")
	if err := os.Symlink(o.GitDir, alias); err != nil {
		t.Fatal(err)
	}
	same := o
	same.GitDir = alias
	if _, known, err := New(same).Find(KindPlugin, "x"); err != nil || !known {
		t.Errorf("%v, %v", known, err)
	}
	second := o
	second.GitDir = filepath.Join(filepath.Dir(o.UserDir), "second")
	if err := os.Mkdir(second.GitDir, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, known, err := New(second).Find(KindPlugin, "x"); err != nil || known {
		t.Errorf("%v, %v", known, err)
	}
	if err := New(second).Add(item("x", hashB)); err != nil {
		t.Fatal(err)
	}
	if it, _, err := s.Find(KindPlugin, "x"); err != nil || it.SHA256 != hashA {
		t.Errorf("%v, %v", it, err)
	}
}

func TestStoreRefuses(t *testing.T) {
	good := `{"version":1,"repositories":{}}`
	for name, c := range map[string]struct {
		text string
		mode os.FileMode
		want string
	}{
		"empty":          {"", 0o600, "damaged"},
		"torn":           {good[:20], 0o600, "damaged"},
		"two":            {good + good, 0o600, "damaged"},
		"no version":     {`{"repositories":{}}`, 0o600, "version 0"},
		"newer":          {`{"version":2,"trusted":[]}`, 0o600, "version 2"},
		"unknown":        {`{"version":1,"repositories":{},"all":true}`, 0o600, "damaged"},
		"null":           {`{"version":1,"repositories":null}`, 0o600, "damaged"},
		"no hash":        {`{"version":1,"repositories":{"/r":[{"kind":"plugin","name":"x"}]}}`, 0o600, "damaged"},
		"short hash":     {`{"version":1,"repositories":{"/r":[{"kind":"plugin","name":"x","sha256":"aa"}]}}`, 0o600, "damaged"},
		"group's":        {good, 0o620, "other users can write it"},
		"everybody's":    {good, 0o606, "other users can write it"},
		"for all to see": {good, 0o644, ""},
	} {
		s, o := fresh(t)
		file := filepath.Join(o.UserDir, "trust.json")
		if err := os.MkdirAll(o.UserDir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(file, c.mode); err != nil {
			t.Fatal(err)
		}
		_, err := s.Items()
		adding := s.Add(item("x", hashA))
		text, readErr := os.ReadFile(file)
		if readErr != nil {
			t.Fatal(readErr)
		}
		if c.want == "" {
			if err != nil || adding != nil {
				t.Errorf("%s: %v, %v", name, err, adding)
			}
			continue
		}
		refused := (*Error)(nil)
		if !errors.As(err, &refused) || !strings.Contains(refused.Reason, c.want) || !errors.As(adding, &refused) {
			t.Errorf("%s: %v, %v", name, err, adding)
		}
		if string(text) != c.text {
			t.Errorf("%s: it was written over", name)
		}
	}
}

// A store in the repository is refused, even if links lead to it.
func TestStoreInside(t *testing.T) {
	_, o := fresh(t)
	repo := filepath.Dir(o.GitDir)
	outside := t.TempDir()
	if err := os.Symlink(filepath.Join(repo, "store.json"), filepath.Join(outside, "trust.json")); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(repo, link); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{repo, o.GitDir, filepath.Join(repo, "new", "coven"), link, outside, "relative", ""} {
		o.UserDir = dir
		s := New(o)
		if err := s.Add(item("x", hashA)); !errors.As(err, new(*Error)) {
			t.Errorf("%q: %v", dir, err)
		}
		if _, err := s.Items(); !errors.As(err, new(*Error)) {
			t.Errorf("%q: %v", dir, err)
		}
	}
	if left, err := os.ReadDir(repo); err != nil || len(left) != 1 {
		t.Errorf("%v, %v", left, err)
	}
}

// A store that is a symbolic link is not replaced by a file.
func TestStoreIsALink(t *testing.T) {
	s, o := fresh(t)
	elsewhere := filepath.Join(t.TempDir(), "kept.json")
	if err := os.WriteFile(elsewhere, []byte(`{"version":1,"repositories":{}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(o.UserDir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(elsewhere, filepath.Join(o.UserDir, "trust.json")); err != nil {
		t.Fatal(err)
	}
	if err := s.Add(item("x", hashA)); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(elsewhere); err != nil || !strings.Contains(string(text), hashA) {
		t.Errorf("%s, %v", text, err)
	}
	if _, known, err := s.Find(KindPlugin, "x"); err != nil || !known {
		t.Errorf("%v, %v", known, err)
	}
}

// Concurrent additions are all stored.
func TestStoreWriters(t *testing.T) {
	_, o := fresh(t)
	var all sync.WaitGroup
	errs := make([]error, 20)
	for i := range errs {
		all.Go(func() { errs[i] = New(o).Add(item(fmt.Sprintf("p%02d", i), hashA)) })
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	if items, err := New(o).Items(); err != nil || len(items) != len(errs) {
		t.Errorf("%d items, %v", len(items), err)
	}
}

func TestEverything(t *testing.T) {
	for value, want := range map[string]bool{"1": true, "": false, "0": false, "true": false, "yes": false} {
		s := New(Options{Getenv: func(key string) string { return map[string]string{Variable: value}[key] }})
		if s.Everything() != want {
			t.Errorf("%s=%s: %v", Variable, value, !want)
		}
	}
}

// Waiting for another process's lock can be stopped.
func TestStopWhileLocked(t *testing.T) {
	s, o := fresh(t)
	stop := make(chan struct{})
	o.Stop = stop
	err := s.Alone(func() error {
		waiting := make(chan error)
		go func() { waiting <- New(o).Add(item("x", hashA)) }()
		close(stop)
		return <-waiting
	})
	if err == nil {
		t.Error("two had the lock")
	}
	if err := s.Add(item("y", hashA)); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}
