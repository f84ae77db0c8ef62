package limits

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/coven-run/coven/plugins/provider"
)

const name = "anthropic"

// near reports whether two times are equal, with a tolerance for slow machines.
func near(a, b time.Time) bool { return a.Sub(b).Abs() < 30*time.Second }

func (b *Store) met(t *testing.T, said provider.Limit, stop bool) Limit {
	t.Helper()
	if got, err := b.Refused(name, said); got != stop || err != nil {
		t.Errorf("%+v: stop %v, %v", said, got, err)
	}
	l, holds, err := b.Limited(name)
	if holds != stop || err != nil {
		t.Errorf("%+v: limited %v, %v", said, holds, err)
	}
	return l
}

func TestLimitThatIsTold(t *testing.T) {
	b := Open(t.TempDir())
	if _, holds, err := b.Limited(name); holds || err != nil {
		t.Fatalf("before: %v, %v", holds, err)
	}
	b.met(t, provider.Limit{After: 2 * time.Second, Again: 2 * time.Second}, false) // the CLI waits by itself
	b.met(t, provider.Limit{Again: Patience}, false)
	l := b.met(t, provider.Limit{Until: time.Now().Add(time.Hour), Reason: "five_hour"}, true)
	if !l.Told || l.Reason != "five_hour" || !near(l.Until, time.Now().Add(time.Hour)) {
		t.Errorf("%+v", l)
	}
	if again := b.met(t, provider.Limit{After: 10 * time.Minute}, true); !again.Until.Equal(l.Until) {
		t.Errorf("a shorter limit takes its place: %+v", again)
	}
	if again := b.met(t, provider.Limit{}, true); !again.Until.Equal(l.Until) {
		t.Errorf("one that nobody knows takes its place: %+v", again)
	}
	b.met(t, provider.Limit{After: time.Second, Again: time.Second}, true) // a longer limit is known
	if _, holds, err := b.Limited("openai"); holds || err != nil {
		t.Errorf("another account is limited, too: %v", err)
	}
	if err := b.Answered(name); err != nil {
		t.Fatal(err)
	}
	if _, holds, _ := Open(filepath.Dir(filepath.Dir(filepath.Dir(b.dir)))).Limited(name); !holds {
		t.Error("an answer that was on its way ended it, or another coven does not know of it")
	}
}

// Waits for limits of unknown duration grow until the API answers. A limit that two
// agents hit counts once.
func TestLimitThatIsNotTold(t *testing.T) {
	b := Open(t.TempDir())
	over := func() {
		t.Helper()
		l, err := b.read(name)
		if err != nil {
			t.Fatal(err)
		}
		l.Until = time.Now().Add(-time.Second)
		if err := b.write(name, l); err != nil {
			t.Fatal(err)
		}
	}
	for _, minutes := range []time.Duration{1, 2, 4, 8, 15, 15} {
		l := b.met(t, provider.Limit{Reason: "overloaded"}, true)
		if again := b.met(t, provider.Limit{Reason: "overloaded"}, true); again.Refusals != l.Refusals || l.Told || !near(l.Until, time.Now().Add(minutes*time.Minute)) {
			t.Errorf("%d minutes: %+v, %+v", minutes, l, again)
		}
		over()
	}
	if l := b.met(t, provider.Limit{After: time.Minute}, true); !near(l.Until, time.Now().Add(15*time.Minute)) {
		t.Errorf("what is told is too early each time: %+v", l)
	}
	over()
	if err := b.Answered(name); err != nil {
		t.Fatal(err)
	}
	if err := b.Answered(name); err != nil {
		t.Fatal(err)
	}
	if l := b.met(t, provider.Limit{}, true); l.Refusals != 1 {
		t.Errorf("after an answer: %+v", l)
	}
	b.met(t, provider.Limit{Until: time.Now().Add(time.Hour)}, true)
	if l := b.met(t, provider.Limit{Until: time.Now().Add(2 * time.Hour)}, true); !l.Told || !near(l.Until, time.Now().Add(2*time.Hour)) {
		t.Errorf("told at last: %+v", l)
	}
}

// An unreadable file is no limit, and an account name cannot be a path.
func TestFile(t *testing.T) {
	root := t.TempDir()
	b := Open(root)
	if _, err := b.Refused("../../evil", provider.Limit{}); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(root, ".coven", "run", "limits", "*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%q, %v", files, err)
	}
	if err := os.WriteFile(files[0], []byte(`{"until":`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, holds, err := b.Limited("../../evil"); holds || err != nil {
		t.Errorf("%v, %v", holds, err)
	}
}

func TestWake(t *testing.T) {
	now := time.Now()
	for wait, most := range map[time.Duration]time.Duration{time.Minute: 6 * time.Second, 5 * time.Hour: time.Minute, 0: 0, -time.Hour: 0} {
		l := Limit{Until: now.Add(wait)}
		seen := map[time.Time]bool{}
		for range 50 {
			wake := l.Wake(now)
			if late := wake.Sub(l.Until); late < 0 || late > most {
				t.Errorf("after %s: %s late", wait, late)
			}
			seen[wake] = true
		}
		if most > 0 && len(seen) < 10 {
			t.Errorf("after %s: all go on at once", wait)
		}
	}
}

// A pipe in place of a limit's file is ignored and does not block.
func TestPipeIsNoLimit(t *testing.T) {
	b := Open(t.TempDir())
	if err := os.MkdirAll(b.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(b.file(name), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, holds, err := b.Limited(name); holds || err != nil {
		t.Errorf("%v, %v", holds, err)
	}
}
