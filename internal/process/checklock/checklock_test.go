package checklock

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// waits returns a Waiting that sends the reasons to a channel.
func waits() (reasons chan string, waiting func(string) error) {
	reasons = make(chan string, 10)
	return reasons, func(reason string) error { reasons <- reason; return nil }
}

func reserve(t *testing.T, d Dir, req Request) *Reservation {
	t.Helper()
	r, err := d.Reserve(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Release)
	return r
}

func holder(task string) Holder { return Holder{Task: task, Repo: "/r", PID: 1} }

func TestLock(t *testing.T) {
	d := Dir(filepath.Join(t.TempDir(), "locks"))
	first := reserve(t, d, Request{Holder: holder("a"), Lock: "db"})
	reserve(t, d, Request{Holder: holder("x"), Lock: "other"}).Release()
	reasons, waiting := waits()
	got := make(chan *Reservation)
	go func() {
		r, _ := d.Reserve(t.Context(), Request{Holder: Holder{Task: "b", Repo: "/elsewhere"}, Lock: "db", Waiting: waiting})
		got <- r
	}()
	if reason := <-reasons; reason != "waits for lock db, held by task a in /r" {
		t.Error(reason)
	}
	select {
	case <-got:
		t.Fatal("two checks have one lock")
	default:
	}
	first.Release()
	(<-got).Release()

	// A wait that is given up does not keep the lock.
	first = reserve(t, d, Request{Holder: holder("a"), Lock: "db"})
	ctx, cancel := context.WithCancelCause(t.Context())
	stopped := errors.New("stopped")
	reasons, waiting = waits()
	go func() { <-reasons; cancel(stopped) }()
	if _, err := d.Reserve(ctx, Request{Holder: holder("b"), Lock: "db", Waiting: waiting}); !errors.Is(err, stopped) {
		t.Errorf("the error is %v", err)
	}
	first.Release()
	_, ignore := waits()
	reserve(t, d, Request{Holder: holder("c"), Lock: "db", Waiting: ignore})
}

// A check that runs alone waits for the others, and those that come later wait for it.
func TestAlone(t *testing.T) {
	d := Dir(t.TempDir())
	a, b := reserve(t, d, Request{Holder: holder("a")}), reserve(t, d, Request{Holder: holder("b")})
	reasons, waiting := waits()
	alone, late := make(chan *Reservation), make(chan *Reservation)
	go func() {
		r, _ := d.Reserve(t.Context(), Request{Holder: holder("c"), Alone: true, Waiting: waiting})
		alone <- r
	}()
	if reason := <-reasons; reason != "waits to run alone, after the checks of task a, task b" {
		t.Error(reason)
	}
	lateReasons, waiting := waits()
	go func() {
		r, _ := d.Reserve(t.Context(), Request{Holder: holder("d"), Waiting: waiting})
		late <- r
	}()
	if reason := <-lateReasons; reason != "waits for the check of task c, which runs alone" {
		t.Error(reason)
	}
	a.Release()
	b.Release()
	c := <-alone
	select {
	case <-late:
		t.Fatal("a check runs at the same time as one that runs alone")
	default:
	}
	if c.Beside() != nil {
		t.Errorf("alone beside %v", c.Beside())
	}
	c.Release()
	(<-late).Release()
	if left, err := os.ReadDir(d.path("running")); err != nil || len(left) > 0 {
		t.Errorf("left are %v, %v", left, err)
	}
}

func TestBeside(t *testing.T) {
	d := Dir(t.TempDir())
	if err := os.MkdirAll(d.path("running"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(d.path("running/killed"), []byte(`{"task":"killed"}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	a := reserve(t, d, Request{Holder: holder("a")})
	reserve(t, d, Request{Holder: Holder{Task: "short", Repo: "/s"}}).Release()
	b := reserve(t, d, Request{Holder: holder("b")})
	reserve(t, d, Request{Holder: holder("a")}).Release() // the task itself is not beside it
	if got := a.Beside(); !slices.Equal(got, []string{"b", "short in /s"}) {
		t.Errorf("beside a: %v", got)
	}
	a.Release()
	reserve(t, d, Request{Holder: holder("b")}).Release()
	if got := b.Beside(); !slices.Equal(got, []string{"a"}) {
		t.Errorf("beside b: %v", got)
	}
}

func TestUnusable(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, d := range []Dir{"", Dir(file)} {
		r, err := d.Reserve(t.Context(), Request{})
		if err != nil || r.Beside() != nil {
			t.Errorf("%q: %v", d, err)
		}
		r.Release()
		for _, req := range []Request{{Lock: "db"}, {Alone: true}} {
			if _, err := d.Reserve(t.Context(), req); err == nil {
				t.Errorf("%q: %+v can run", d, req)
			}
		}
	}
}

func BenchmarkReserve(b *testing.B) {
	d := Dir(b.TempDir())
	for b.Loop() {
		r, err := d.Reserve(b.Context(), Request{Holder: holder("a")})
		if err != nil {
			b.Fatal(err)
		}
		r.Beside()
		r.Release()
	}
}
