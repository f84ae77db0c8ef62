package search_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/coven-run/coven/internal/search"
)

// The index may be removed or damaged at any time without changing results.
func TestDamage(t *testing.T) {
	files := map[string]string{}
	for i := range 300 {
		files[fmt.Sprintf("f%d.txt", i)] = word(i) + " common words of all files"
	}
	f := repository(t, files)
	ask := func() { t.Helper(); f.open(); f.answer(word(17), "f17.txt") }
	ask()
	whole, err := os.ReadFile(f.file("index"))
	must(t, err)
	if len(whole) < 20000 {
		t.Fatalf("the index has %d bytes, so that this test damages nothing", len(whole))
	}
	outside := t.TempDir()
	noise := rand.New(rand.NewSource(1))
	damages := map[string]func(string) error{
		"gone":  os.Remove,
		"empty": func(file string) error { return os.WriteFile(file, nil, 0o600) },
		"text":  func(file string) error { return os.WriteFile(file, []byte("apple"), 0o600) },
		"half":  func(file string) error { return os.Truncate(file, int64(len(whole)/2)) },
		"noise": func(file string) error {
			data := slices.Clone(whole)
			noise.Read(data[4096:])
			return os.WriteFile(file, data, 0o600)
		},
		"zeros": func(file string) error {
			return os.WriteFile(file, append(slices.Clone(whole[:8192]), make([]byte, len(whole)-8192)...), 0o600)
		},
		"directory": func(file string) error {
			return errors.Join(os.Remove(file), os.MkdirAll(filepath.Join(file, "x"), 0o755))
		},
		"half written": func(file string) error { return os.WriteFile(file+".new", []byte("x"), 0o600) },
		"pipes": func(file string) error {
			var errs []error
			for _, name := range []string{"index", "lock", "root", "index.new"} {
				name = filepath.Join(filepath.Dir(file), name)
				errs = append(errs, os.RemoveAll(name), syscall.Mkfifo(name, 0o600))
			}
			return errors.Join(errs...)
		},
		"link": func(file string) error {
			return errors.Join(os.Remove(file), os.Symlink(filepath.Join(outside, "created"), file))
		},
		"all": func(file string) error { return os.RemoveAll(filepath.Dir(file)) },
	}
	for name, damage := range damages {
		t.Run(name, func(t *testing.T) {
			f.t = t
			must(t, damage(f.file("index")))
			ask()
			lists := f.lists
			ask()
			if f.lists != lists {
				t.Error("the index was not stored again")
			}
		})
	}
	f.t = t
	if left, err := os.ReadDir(outside); err != nil || len(left) > 0 {
		t.Errorf("behind the link: %v, %v", left, err)
	}
}

// File names that are not valid UTF-8 are found, too.
func TestNamesOfBytes(t *testing.T) {
	if runtime.GOOS == "darwin" {
		t.Skip("its file systems have no such names")
	}
	f := repository(t, map[string]string{"bad\xffname": "apple"})
	f.answer("apple", "bad\xffname")
	lines, _, err := f.Search(t.Context(), "apple", search.QueryOptions{})
	if err != nil || len(lines) != 1 || lines[0].Path != "bad\xffname" {
		t.Errorf("%+v, %v", lines, err)
	}
}

// An index of another version of coven is replaced.
func TestOtherVersion(t *testing.T) {
	f := repository(t, map[string]string{"a.txt": "apple"})
	f.answer("apple", "a.txt")
	file, err := os.OpenFile(f.file("index"), os.O_WRONLY, 0)
	must(t, err)
	_, err = file.WriteAt([]byte("coven search index 1\n"), 0)
	must(t, errors.Join(err, file.Close()))
	f.open()
	f.answer("apple", "a.txt")
	if f.lists != 2 {
		t.Errorf("the files were listed %d times, want twice", f.lists)
	}
}

// Without a writable cache, the index is in memory.
func TestWithoutCache(t *testing.T) {
	f := repository(t, map[string]string{"a.txt": "apple"})
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, nil, 0o644))
	for _, cache := range []string{"", filepath.Join(file, "below")} {
		f.cache = cache
		f.open()
		lists := f.lists
		f.answer("apple", "a.txt")
		f.answer("apple", "a.txt")
		if f.lists != lists+1 {
			t.Errorf("with the cache %q the files were listed %d times", cache, f.lists-lists)
		}
	}
}

// word returns a unique word of letters for each number.
func word(n int) string {
	return "w" + strings.Map(func(r rune) rune { return r - '0' + 'k' }, fmt.Sprintf("%03d", n))
}

// Concurrent processes, some of which are killed, do not damage the index.
func TestProcesses(t *testing.T) {
	if dir := os.Getenv("COVEN_SEARCHED"); dir != "" {
		askForever(t, dir)
	}
	f := repository(t, nil)
	for i := range 50 {
		f.write(fmt.Sprintf("f%d.txt", i), word(i))
	}
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for range 5 {
				cmd := exec.Command(os.Args[0], "-test.run=^TestProcesses$")
				cmd.Env = append(os.Environ(), "COVEN_SEARCHED="+f.dir, "COVEN_SEARCH_CACHE="+f.cache, fmt.Sprintf("COVEN_SEARCHER=%c.txt", 'a'+i))
				out, err := cmd.StdoutPipe()
				if err != nil || cmd.Start() != nil {
					t.Error("the process does not start")
					return
				}
				answers := make([]byte, 2) // after that it is querying for at least the third time
				for n := 0; n < len(answers); {
					got, err := out.Read(answers[n:])
					if n += got; err != nil {
						t.Errorf("the process ended: %v", err)
						break
					}
				}
				if string(answers) != "xx" { // the process exited by itself
					rest, _ := io.ReadAll(out)
					t.Errorf("the process printed %s%s", answers, rest)
				}
				_ = cmd.Process.Kill()
				_ = cmd.Wait()
			}
		})
	}
	all.Wait()
	f.open()
	f.answer(word(17), "f17.txt")
	for i := range 4 {
		f.write(fmt.Sprintf("%c.txt", 'a'+i), "settled")
	}
	f.answer("settled", "a.txt", "b.txt", "c.txt", "d.txt")
}

// askForever repeatedly changes a file and queries it, and prints a character for each correct result.
func askForever(t *testing.T, dir string) {
	x := search.New(search.Options{Root: dir, List: gitList(t, dir), Cache: os.Getenv("COVEN_SEARCH_CACHE"), Now: time.Now})
	own := os.Getenv("COVEN_SEARCHER")
	for i := 0; ; i++ {
		asked := word(i) + strings.TrimSuffix(own, ".txt")
		must(t, os.WriteFile(filepath.Join(dir, own), []byte(asked), 0o644))
		hits, err := x.Query(t.Context(), asked, search.QueryOptions{})
		if err != nil || len(hits) != 1 || hits[0].Path != own {
			t.Fatalf("%s is answered by %+v, %v", asked, hits, err)
		}
		fmt.Print("x")
	}
}

// A query that waits for another process ends with its context.
func TestCanceled(t *testing.T) {
	f := repository(t, map[string]string{"a.txt": "apple"})
	listing, release := make(chan struct{}), make(chan struct{})
	slow := search.New(search.Options{Root: f.dir, Cache: f.cache, Now: time.Now, List: func(context.Context) (search.Listing, error) {
		close(listing)
		<-release
		return search.Listing{Files: []string{"a.txt"}}, nil
	}})
	done := make(chan error, 1)
	go func() {
		_, err := slow.Query(t.Context(), "apple", search.QueryOptions{})
		done <- err
	}()
	<-listing
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.Query(ctx, "apple", search.QueryOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("the canceled query ended with %v", err)
	}
	close(release)
	must(t, <-done)
	f.answer("apple", "a.txt")
}

// Indexes of deleted directories are removed when a new index is created.
func TestPrune(t *testing.T) {
	f := repository(t, map[string]string{"a.txt": "apple"})
	f.answer("apple", "a.txt")
	gone := f.file("index")
	must(t, os.RemoveAll(f.dir))
	other := repository(t, map[string]string{"a.txt": "apple"})
	other.cache = f.cache
	other.open()
	other.answer("apple", "a.txt")
	if other.file("index") == gone {
		t.Error("the index of a directory that is gone is still there")
	}
	third := repository(t, map[string]string{"b.txt": "apple"})
	third.cache = f.cache
	third.open()
	third.answer("apple", "b.txt")
	if found, _ := filepath.Glob(filepath.Join(f.cache, "search", "*", "index")); len(found) != 2 {
		t.Errorf("the cache has %q", found)
	}
}

// Files of older versions of coven are removed.
func TestOlderFiles(t *testing.T) {
	f := repository(t, map[string]string{"a.txt": "apple"})
	f.answer("apple", "a.txt")
	dir := filepath.Dir(f.file("index"))
	must(t, os.Remove(filepath.Join(dir, "index")))
	for _, name := range []string{"index.db", "index.db-wal", "index.db-shm", "index.db-journal"} {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte("SQLite format 3"), 0o600))
	}
	f.answer("apple", "a.txt")
	entries, err := os.ReadDir(dir)
	must(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if want := []string{"index", "lock", "root"}; !slices.Equal(names, want) {
		t.Errorf("the directory has %q, want %q", names, want)
	}
}

// The index drops the old contents of files, so that it does not grow.
func TestGone(t *testing.T) {
	f := repository(t, map[string]string{"a.txt": "apple", "b.txt": "apple", "c.txt": "apple"})
	f.answer("apple", "a.txt", "b.txt", "c.txt")
	for i := range 30 {
		f.write("a.txt", word(i)+" apple")
		f.answer(word(i), "a.txt")
	}
	f.answer(word(0))
	f.answer("apple", "b.txt", "c.txt", "a.txt")
	must(t, errors.Join(os.Remove(filepath.Join(f.dir, "a.txt")), os.Remove(filepath.Join(f.dir, "b.txt"))))
	f.answer("apple", "c.txt")
	data, err := os.ReadFile(f.file("index"))
	must(t, err)
	for i := range 30 {
		if strings.Contains(string(data), word(i)) {
			t.Errorf("the index still has %s", word(i))
		}
	}
}

// The user's files are not written or removed, even if links or other files replace the index.
func TestElsewhere(t *testing.T) {
	f := repository(t, map[string]string{"a.txt": "apple"})
	f.answer("apple", "a.txt")
	index := f.file("index")
	dir := filepath.Dir(index)
	mine := t.TempDir()
	keep := func() {
		must(t, os.MkdirAll(filepath.Join(mine, "sub"), 0o755))
		for _, name := range []string{"file", "root", "lock", "sub/file"} {
			must(t, os.WriteFile(filepath.Join(mine, name), []byte("mine"), 0o644))
		}
		long := time.Now().Add(-1000 * time.Hour)
		must(t, os.Chtimes(filepath.Join(mine, "root"), long, long))
	}
	link := func(name string) error {
		return errors.Join(os.RemoveAll(filepath.Join(dir, name)), os.Link(filepath.Join(mine, "file"), filepath.Join(dir, name)))
	}
	for name, damage := range map[string]func() error{
		"a link to a new index":   func() error { f.write("b.txt", "pear"); return link("index.new") },
		"a link to the root":      func() error { return errors.Join(os.Remove(index), link("root")) },
		"a link to the index":     func() error { return link("index") },
		"a link to the lock":      func() error { return link("lock") },
		"a directory elsewhere":   func() error { return errors.Join(os.RemoveAll(dir), os.Symlink(mine, dir)) },
		"a file":                  func() error { return errors.Join(os.RemoveAll(dir), os.WriteFile(dir, []byte("x"), 0o600)) },
		"a link to nothing":       func() error { return errors.Join(os.RemoveAll(dir), os.Symlink(filepath.Join(mine, "none"), dir)) },
		"another index elsewhere": func() error { return errors.Join(os.RemoveAll(dir), os.Symlink(mine, dir+"0")) },
	} {
		keep()
		must(t, damage())
		f.open()
		f.answer("apple", "a.txt")
		for _, file := range []string{"file", "root", "lock", "sub/file"} {
			if text, err := os.ReadFile(filepath.Join(mine, file)); err != nil || string(text) != "mine" {
				t.Errorf("%s: %s has %.20q, %v", name, file, text, err)
			}
		}
		if names, err := os.ReadDir(mine); err != nil || len(names) != 4 {
			t.Errorf("%s: %v, %v", name, names, err)
		}
		lists := f.lists
		f.open()
		if f.answer("apple", "a.txt"); f.lists != lists {
			t.Errorf("%s: the index was not stored again", name)
		}
		_ = os.Remove(dir + "0")
	}
}

// A cache whose path contains glob characters is pruned, too.
func TestPrunePattern(t *testing.T) {
	f := repository(t, map[string]string{"a.txt": "apple"})
	f.cache = filepath.Join(f.cache, "[a")
	f.open()
	f.answer("apple", "a.txt")
	must(t, os.RemoveAll(f.dir))
	other := repository(t, map[string]string{"a.txt": "apple"})
	other.cache = f.cache
	other.open()
	other.answer("apple", "a.txt")
	left := 0
	must(t, filepath.WalkDir(f.cache, func(path string, _ os.DirEntry, err error) error {
		if filepath.Base(path) == "index" {
			left++
		}
		return err
	}))
	if left != 1 {
		t.Errorf("the cache has %d indexes", left)
	}
}

// On a full disk the results are correct, and no incomplete file remains.
func TestFullDisk(t *testing.T) {
	files := map[string]string{}
	for i := range 200 {
		files[fmt.Sprintf("f%d.txt", i)] = word(i) + " " + strings.Repeat(word(i)+"x ", 20)
	}
	f := repository(t, files)
	if err := mountSmall(t, f.cache, 64<<10); err != nil {
		t.Skip(err)
	}
	for i := range 3 {
		must(t, os.WriteFile(filepath.Join(f.cache, "ballast"), make([]byte, 52<<10), 0o600))
		f.open()
		f.answer(word(i), fmt.Sprintf("f%d.txt", i))
		if found, _ := filepath.Glob(filepath.Join(f.cache, "search", "*", "index*")); len(found) > 0 {
			t.Errorf("the cache has %q", found)
		}
	}
	must(t, os.Remove(filepath.Join(f.cache, "ballast")))
	f.open()
	f.answer(word(7), "f7.txt")
	f.file("index")
}

// An index that was not used for a month is removed, unless a process is using it.
func TestPruneUnused(t *testing.T) {
	const day = 24 * time.Hour
	for name, c := range map[string]struct {
		used []time.Duration // times of use
		now  time.Duration
		held bool
		kept bool
	}{
		"not long ago":        {[]time.Duration{0}, 29 * day, false, true},
		"long ago":            {[]time.Duration{0}, 31 * day, false, false},
		"first long ago":      {[]time.Duration{0, 20 * day}, 40 * day, false, true},
		"a process holds it":  {[]time.Duration{0}, 31 * day, true, true},
		"the clock goes back": {[]time.Duration{31 * day}, 0, false, true},
	} {
		f := repository(t, map[string]string{"a.txt": "apple"})
		for _, at := range c.used {
			f.now = time.Time{}.Add(at)
			f.answer("apple", "a.txt")
		}
		index := f.file("index")
		lock, err := os.OpenFile(f.file("lock"), os.O_RDWR, 0)
		must(t, err)
		if c.held {
			must(t, syscall.Flock(int(lock.Fd()), syscall.LOCK_EX))
		}
		other := repository(t, map[string]string{"a.txt": "apple"})
		other.cache, other.now = f.cache, time.Time{}.Add(c.now)
		other.open()
		other.answer("apple", "a.txt")
		if _, err := os.Lstat(index); (err == nil) != c.kept {
			t.Errorf("%s: %v", name, err)
		}
		must(t, lock.Close())
	}
}

// A killed update does not damage the index.
func TestHalfWritten(t *testing.T) {
	f := repository(t, map[string]string{"a.txt": "apple"})
	f.answer("apple", "a.txt")
	must(t, os.WriteFile(f.file("index")+".new", []byte("x"), 0o600))
	f.write("a.txt", "pear")
	f.open()
	if f.answer("pear", "a.txt"); f.lists != 1 {
		t.Errorf("the files were listed %d times", f.lists)
	}
}
