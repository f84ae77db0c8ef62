package runner

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// What is said of judges that could not judge: a line each, with the beginning of what
// they printed.
func TestBriefly(t *testing.T) {
	one := errors.New("it ended with exit code 3; it printed last:\n    no licence found")
	panics := errors.New("it ended with exit code 2; it printed last:\n\n    panic: oh\n    \n    goroutine 1")
	long := errors.New("it printed last:\n    " + strings.Repeat("ü", 300))
	for _, test := range []struct {
		err  error
		want []string
	}{
		{errors.New("its time is up"), []string{"its time is up"}},
		{errors.New("two\nlines"), []string{"two"}},
		{errors.New("nothing:"), []string{"nothing:"}},
		{one, []string{"it ended with exit code 3; it printed last: no licence found"}},
		{panics, []string{"it ended with exit code 2; it printed last: panic: oh ..."}},
		{long, []string{"it printed last: " + strings.Repeat("ü", 100) + " ..."}},
		{errors.Join(fmt.Errorf("reviewer a: %w", one), nil, errors.Join(errors.New("b"), errors.New("c"))), []string{"reviewer a: it ended with exit code 3; it printed last: no licence found", "b", "c"}},
	} {
		if got := briefly(test.err); !slices.Equal(got, test.want) {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
}
