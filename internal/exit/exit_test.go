package exit

import (
	"errors"
	"fmt"
	"os/exec"
	"testing"
)

func TestCode(t *testing.T) {
	other := exec.CommandContext(t.Context(), "sh", "-c", "exit 128").Run()
	for name, c := range map[string]struct {
		err  error
		code int
		next string
	}{
		"none":            {nil, OK, ""},
		"plain":           {errors.New("x"), Failed, ""},
		"another program": {fmt.Errorf("git: %w", other), Failed, ""},
		"usage":           {Usagef("coven run --help", "x"), Usage, "coven run --help"},
		"wrapped":         {fmt.Errorf("x: %w", Personf("coven why", "y")), Person, "coven why"},
		"outer decides":   {&Error{Exit: Interrupted, Err: Usagef("coven trust", "y")}, Interrupted, "coven trust"},
		"outer advises":   {&Error{Exit: Failed, Err: Usagef("a", "y"), Next: "b"}, Failed, "b"},
		"joined":          {errors.Join(errors.New("x"), Sentinel(Limit, "later", "y")), Limit, "later"},
		"status":          {Status(Budget), Budget, ""},
	} {
		if code, next := Code(c.err), Next(c.err); code != c.code || next != c.next {
			t.Errorf("%s: %d %q, want %d %q", name, code, next, c.code, c.next)
		}
	}
	if Status(OK) != nil || !IsSilent(Status(Failed)) || IsSilent(Usagef("", "x")) || IsSilent(errors.New("x")) {
		t.Error("Status ends a command without a message, and nothing else does")
	}
}

func TestWorse(t *testing.T) {
	order := []int{OK, Person, Limit, Budget, Failed, Usage, Interrupted}
	for i, a := range order {
		for j, b := range order {
			if got := Worse(a, b); got != order[max(i, j)] {
				t.Errorf("Worse(%d, %d) = %d", a, b, got)
			}
		}
		if got := Worse(a, 128); got != Worse(a, Failed) {
			t.Errorf("Worse(%d, 128) = %d", a, got)
		}
	}
}
