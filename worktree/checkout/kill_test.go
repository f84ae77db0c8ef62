package checkout

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coven-run/coven/internal/process/failpoint"
)

// actor is the main function of a process that is killed: it moves a checkout and its branch, or finishes
// an interrupted move. Arguments: what, how, directory, OLD, NEW.
func actor(args []string) int {
	what, how, dir, from, to := args[0], args[1], args[2], args[3], args[4]
	r := repo{&testing.T{}, dir}
	c := r.checkout()
	for _, h := range hows() {
		if h.name == how {
			h.change(c)
		}
	}
	var err error
	switch what {
	case "land":
		var m *Move
		if m, err = c.Advance(context.Background(), from, to); err == nil {
			failpoint.Point("test.moved")
			r.git("update-ref", "refs/heads/main", to)
			err = m.Finish(context.Background())
		}
	case "recover":
		err = r.recover(c)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// recover finishes or undoes an interrupted move, depending on the branch.
func (r repo) recover(c *Checkout) error {
	for {
		m, left, err := c.Left()
		if err != nil || left == nil {
			return err
		}
		if r.git("rev-parse", "refs/heads/main") == left.To {
			err = m.Finish(context.Background())
		} else {
			err = m.Undo(context.Background())
		}
		if err != nil {
			return err
		}
	}
}

// act runs an actor and reports whether it was killed.
func (r repo) act(env []string, args ...string) bool {
	r.t.Helper()
	cmd := exec.Command(os.Args[0], append([]string{"actor"}, args...)...)
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if err == nil {
		return false
	}
	if err.Error() != "signal: killed" {
		r.t.Fatalf("%v: %v\n%s", args, err, out)
	}
	return true
}

// copyOf copies the checkout, including timestamps.
func (r repo) copyOf(t testing.TB) repo {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "r")
	if out, err := exec.Command("cp", "-a", r.dir, dir).CombinedOutput(); err != nil {
		t.Fatalf("cp: %v\n%s", err, out)
	}
	c := repo{t, dir}
	_, _ = c.try("update-index", "-q", "--refresh")
	return c
}

// oldOrNew fails if the content of a path is neither that before nor that after the move.
func (r repo) oldOrNew(before, after string) {
	r.t.Helper()
	known := map[string]bool{}
	for line := range strings.Lines(before + after) {
		known[line] = true
	}
	both := map[string]bool{} // paths that exist before and after
	for line := range strings.Lines(before) {
		path, _, _ := strings.Cut(line, " ")
		both[path] = strings.Contains("\n"+after, "\n"+path+" ")
	}
	for line := range strings.Lines(r.files()) {
		if path, _, _ := strings.Cut(line, " "); !known[line] && !strings.HasSuffix(line, "/\n") && !strings.HasPrefix(path, ".coven-") {
			r.t.Errorf("neither old nor new: %s", line)
		} else {
			delete(both, path)
		}
	}
	for path, must := range both {
		if must {
			r.t.Errorf("%s is missing", path)
		}
	}
}

// A move that is killed at any point, with a recovery that is killed at any point, leaves each path with
// its old or its new content. In the end, either everything is as before, including timestamps, or
// everything has moved.
func TestKilledAnywhere(t *testing.T) {
	old := "echo 1 >a; mkdir -p d/e f; echo 1 >d/e/x; echo 1 >f/x; ln -s a l; echo 1 >keep; echo 1 >mine; echo 1 >staged"
	change := "echo 2 >a; rm -r d; rm -r f; echo 2 >f; ln -sf b l; mkdir -p n/m; echo 2 >n/m/x; chmod +x keep"
	person := "echo dirty >mine; echo s >staged; git add staged; echo d >staged; echo u >untracked"
	sample, from, to := prepare(t, filepath.Join(t.TempDir(), "r"), "", old, change, person)
	done := sample.copyOf(t)
	done.settle(from, to)
	after := done.look()
	for _, how := range hows() {
		if how.name == "without exchange" {
			continue // f would have to be exchanged, see TestKilledWithoutExchange
		}
		t.Run(how.name, func(t *testing.T) { everyKill(t, sample, how.name, from, to, after, done.files()) })
	}
}

func TestKilledWithoutExchange(t *testing.T) {
	sample, from, to := prepare(t, filepath.Join(t.TempDir(), "r"), "",
		"echo 1 >a; mkdir -p d/e; echo 1 >d/e/x; ln -s a l; echo 1 >mine", "echo 2 >a; rm -r d; ln -sf b l; mkdir n; echo 2 >n/x", "echo dirty >mine")
	done := sample.copyOf(t)
	done.settle(from, to)
	everyKill(t, sample, "without exchange", from, to, done.look(), done.files())
}

func everyKill(t *testing.T, sample repo, how, from, to, after, afterFiles string) {
	trace := filepath.Join(t.TempDir(), "trace")
	undisturbed := sample.copyOf(t)
	if undisturbed.act([]string{failpoint.TraceEnv + "=" + trace}, "land", how, undisturbed.dir, from, to) {
		t.Fatal("killed without reason")
	}
	same(t, "undisturbed", undisturbed.look(), after)
	for _, kill := range hits(t, trace) {
		t.Run(kill, func(t *testing.T) {
			t.Parallel()
			r := sample.copyOf(t)
			before, files, stamps := r.look(), r.files(), r.stamps()
			if !r.act([]string{failpoint.Env + "=" + kill}, "land", how, r.dir, from, to) {
				t.Fatal("it was not killed")
			}
			r.oldOrNew(files, afterFiles)
			recovered := func(r repo) {
				r.t.Helper()
				if r.git("rev-parse", "refs/heads/main") == to {
					same(r.t, "landed", r.look(), after)
				} else {
					same(r.t, "undone", r.look(), before)
					same(r.t, "stamps", strings.ReplaceAll(r.stamps(), r.dir, ""), strings.ReplaceAll(stamps, sample.dir, ""))
				}
				r.clean()
			}
			stamps = strings.ReplaceAll(stamps, r.dir, "")
			r.killRecovery(how, from, to, files, afterFiles)
			if r.act(nil, "recover", how, r.dir, from, to) {
				t.Fatal("killed without reason")
			}
			recovered(r)
			if r.act(nil, "land", how, r.dir, from, to) {
				t.Fatal("killed without reason")
			}
			same(t, "again", r.look(), after)
		})
	}
}

// killRecovery kills the recovery at each of its points in turn.
func (r repo) killRecovery(how, from, to, before, after string) {
	r.t.Helper()
	for _, kill := range []string{
		"checkout.undo.locked", "checkout.undo.step", "checkout.undo.step:2", "checkout.undo.step:4",
		"checkout.undo.index", "checkout.unlocked", "checkout.ended",
	} {
		if r.act([]string{failpoint.Env + "=" + kill}, "recover", how, r.dir, from, to) {
			r.oldOrNew(before, after)
		}
	}
}

// hits lists each hit of each failpoint in a trace.
func hits(t *testing.T, trace string) []string {
	t.Helper()
	raw, err := os.ReadFile(trace)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	count := map[string]int{}
	for point := range strings.FieldsSeq(string(raw)) {
		count[point]++
		all = append(all, fmt.Sprintf("%s:%d", point, count[point]))
	}
	return all
}
