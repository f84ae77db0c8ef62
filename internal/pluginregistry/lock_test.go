package pluginregistry

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

var (
	hashA = strings.Repeat("a", 64)
	hashB = strings.Repeat("0", 64) // YAML parses it as a number
)

func lockOf(t *testing.T, text string) (string, string) {
	t.Helper()
	root := t.TempDir()
	file := filepath.Join(root, LockFile)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if text != "" {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root, file
}

func TestReadLock(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", ""},
		{"# nothing yet\n", ""},
		{"plugins: {}", ""},
		{"plugins:\n  coven-model-x: {any: " + hashB + ", linux/amd64: " + hashA + "}", ""},
		{"plugins:\n  coven-model-x: {}", "plugins.lock:2:18: there is no hash of coven-model-x"},
		{"plugins:\n  coven-model-x: " + hashA, "2:18: this must be keys with values"},
		{"plugins:\n  coven-model-x: {any: " + hashA[1:] + "}", "2:24: \"" + hashA[1:] + "\" is not a SHA-256"},
		{"plugins:\n  coven-model-x: {any: " + strings.ToUpper(hashA) + "}", "is not a SHA-256"},
		{"plugins:\n  coven-model-x: {linux: " + hashA + "}", "\"linux\" is not a platform"},
		{"plugins:\n  coven-model-X: {any: " + hashA + "}", "is not the name of a plugin's file"},
		{"plugins:\n  coven-thing-x: {any: " + hashA + "}", "is not the name of a plugin's file"},
		{"plugins:\n  coven-model-x: {any: " + hashA + ", any: " + hashB + "}", "the key \"any\" is given twice"},
		{"plugin: {}", "1:1: unknown key \"plugin\" (did you mean \"plugins\"?)"},
		{"plugins: {}\nversion: 1", "2:1: unknown key \"version\""},
		{"plugins: [", "this is not YAML"},
	} {
		root, _ := lockOf(t, c.text)
		_, err := ReadLock(root)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s\n%v", c.text, err)
		}
	}
}

// A link out of the repository is not followed, neither for reading nor for writing.
func TestLockIsALink(t *testing.T) {
	root, file := lockOf(t, "")
	outside := filepath.Join(t.TempDir(), "x")
	if err := os.WriteFile(outside, []byte("plugins: {}"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, file); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadLock(root); err == nil {
		t.Error("read through a link")
	}
	if err := (Lock{}).Write(root); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(outside); err != nil || string(text) != "plugins: {}" {
		t.Errorf("%s, %v", text, err)
	}
	if err := os.RemoveAll(filepath.Dir(file)); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Dir(outside), filepath.Dir(file)); err != nil {
		t.Fatal(err)
	}
	if err := (Lock{}).Write(root); err == nil {
		t.Error("wrote through a link")
	}
}

// A pipe in place of the lock does not block.
func TestLockIsAPipe(t *testing.T) {
	root, file := lockOf(t, "")
	if err := syscall.Mkfifo(file, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadLock(root); err == nil || !strings.Contains(err.Error(), "read .coven/plugins.lock: it is not a file") {
		t.Errorf("%v", err)
	}
}

func TestLockPin(t *testing.T) {
	lock := Lock{"coven-model-x": {"linux/amd64": hashA, "darwin/arm64": hashA}}
	lock.Pin("coven-model-x", "linux/amd64", hashB)
	lock.Pin("coven-model-y", AnyPlatform, hashA)
	lock.Pin("coven-model-z", "linux/amd64", hashA)
	lock.Pin("coven-model-z", AnyPlatform, hashB)
	lock.Pin("coven-arbiter-w", AnyPlatform, hashA)
	lock.Pin("coven-arbiter-w", "linux/amd64", hashB)
	want := Lock{
		"coven-model-x":   {"linux/amd64": hashB, "darwin/arm64": hashA},
		"coven-model-y":   {"any": hashA},
		"coven-model-z":   {"any": hashB},
		"coven-arbiter-w": {"linux/amd64": hashB},
	}
	root, _ := lockOf(t, "")
	if err := lock.Write(root); err != nil {
		t.Fatal(err)
	}
	got, err := ReadLock(root)
	if err != nil || !maps.EqualFunc(got, want, maps.Equal[map[string]string, map[string]string]) {
		t.Errorf("%v, %v", got, err)
	}
	if !got.Allows("coven-model-x", hashA) || !got.Allows("coven-model-x", hashB) || got.Allows("coven-model-y", hashB) || got.Allows("coven-model-none", hashA) {
		t.Errorf("%v", got)
	}
	if got.Names("coven-model-none") || !got.Names("coven-arbiter-w") {
		t.Errorf("%v", got)
	}
}
