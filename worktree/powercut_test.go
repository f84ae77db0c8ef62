package worktree

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coven-run/coven/internal/process/failpoint"
	"github.com/coven-run/coven/worktree/integrate"
	"github.com/coven-run/coven/worktree/internal/file"
	"github.com/coven-run/coven/worktree/internal/repo"
	"github.com/coven-run/coven/worktree/land"
	"github.com/coven-run/coven/worktree/pool"
)

// A power cut at any moment of a landing: the image of the disk is copied while the landing is stopped at a named
// or a random moment, and mounted instead of the disk. Every ref and every record is readable, each file of the checkout has its old or its
// new content, and a landing that has returned has landed. The next landing repairs the rest.
//
// It needs a loop device.
func TestPowerCut(t *testing.T) {
	oneAtATime(t)
	for kind, options := range map[string]string{"ext4": "loop", "xfs": "loop,nouuid", "btrfs": "loop"} {
		t.Run(kind, func(t *testing.T) {
			d := newDisk(t, "mkfs."+kind, options)
			for n := range seeds(3, 400) {
				d.cut(t, n)
			}
		})
	}
}

// powerPoints are moments of a landing.
func powerPoints() []string {
	return []string{
		"land.intent", "checkout.staged", "checkout.recorded", "checkout.step.after", "checkout.step.after:20",
		"checkout.index.before", "checkout.index.after", "land.checkout.after", "land.ref.after", "checkout.settle",
		"checkout.unlocked", "checkout.ended", "land.return",
	}
}

// A disk is a file system in an image, with a repository.
type disk struct {
	image, top string
	options    string // for mount
	random     *rand.Rand
	landing    time.Duration // about the time that a landing takes
}

func newDisk(t *testing.T, mkfs, options string) *disk {
	t.Helper()
	if _, err := exec.LookPath(mkfs); err != nil || os.Getuid() != 0 {
		t.Skipf("no file system of a test's own can be made here: %v", err)
	}
	d := &disk{options: options, image: filepath.Join(t.TempDir(), "image"), top: filepath.Join(t.TempDir(), "top"), random: rand.New(rand.NewPCG(34, 9)), landing: 300 * time.Millisecond}
	must(t, os.Mkdir(d.top, 0o755))
	must(t, os.WriteFile(d.image, nil, 0o600))
	must(t, os.Truncate(d.image, 512<<20)) // 400 landings fill 320 MB
	if out, err := exec.Command(mkfs, "-q", d.image).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if err := d.mount(); err != nil {
		t.Skipf("no file system of a test's own can be mounted here: %v", err)
	}
	t.Cleanup(func() { _ = exec.Command("umount", "-l", d.top).Run() })
	gitIn(t, d.top, "init", "-q", "-b", "main")
	for i := range 30 {
		write(t, filepath.Join(d.top, fmt.Sprintf("file%d.txt", i)), fmt.Sprintln("first", i))
	}
	gitIn(t, d.top, "add", ".")
	gitIn(t, d.top, "commit", "-qm", "first")
	return d
}

func (d *disk) mount() error {
	out, err := exec.Command("mount", "-o", d.options, d.image, d.top).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, out)
	}
	return err
}

// unmount unmounts the disk when the git processes of a killed landing have ended.
func (d *disk) unmount(t *testing.T) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		out, err := exec.Command("umount", d.top).CombinedOutput()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			used, _ := exec.Command("fuser", "-vm", d.top).CombinedOutput()
			t.Fatalf("%v: %s%s", err, out, used)
		}
	}
}

// cut lands a change, and cuts the power at a random moment.
func (d *disk) cut(t *testing.T, n uint64) {
	t.Helper()
	task := fmt.Sprint("T", n)
	r := value[*repo.Repo](t)(repo.Open(t.Context(), d.top))
	w := add(t, r, task)
	for i := range 30 {
		write(t, filepath.Join(w.Path, fmt.Sprintf("file%d.txt", i)), fmt.Sprintln(task, i))
		write(t, filepath.Join(w.Path, task, fmt.Sprint(i)), fmt.Sprintln(task, i))
	}
	commitAll(t, w, "work")
	claimFor(t, r, task)
	must(t, exec.Command("sync").Run()) // the work of the task; the landing is what is tested
	tip, intent := targetOf(r, t).Tip, filepath.Join(r.GitDir, "intent-"+task)

	cmd := actorCommand(d.top, task, intent, land.Squash)
	stop := d.stopAt
	if n%2 == 1 {
		stop = d.stopAnywhere
	}
	point, kill := stop(t, cmd)
	t.Log(n, point)
	d.copy(t)
	kill()
	pool.Wait(r)
	r.Store.Close()
	d.unmount(t)
	must(t, os.Rename(d.image+".cut", d.image))
	must(t, d.mount())
	d.check(t, task, point, tip, intent)
}

// stopAt starts a landing that stops at one of the named moments.
func (d *disk) stopAt(t *testing.T, cmd *exec.Cmd) (point string, end func()) {
	t.Helper()
	point = powerPoints()[d.random.IntN(len(powerPoints()))]
	name, hit, found := strings.Cut(point, ":")
	if !found {
		hit = "1"
	}
	cmd.Env = append(os.Environ(), failpoint.Env+"="+name+":"+hit+":stop")
	must(t, cmd.Start())
	var state syscall.WaitStatus
	if _, err := syscall.Wait4(cmd.Process.Pid, &state, syscall.WUNTRACED, nil); err != nil || !state.Stopped() {
		t.Fatalf("%s: not stopped: %v", point, err)
	}
	return point, func() {
		must(t, cmd.Process.Kill())
		if err := cmd.Wait(); err == nil {
			t.Fatal("it was not killed")
		}
	}
}

// stopAnywhere starts a landing and stops it at a random moment. It returns "land.return" if the landing has
// ended.
func (d *disk) stopAnywhere(t *testing.T, cmd *exec.Cmd) (point string, end func()) {
	t.Helper()
	must(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	began, after := time.Now(), time.Duration(d.random.Int64N(int64(d.landing)))
	select {
	case err := <-ended:
		must(t, err)
		d.landing = time.Since(began) * 5 / 4
		return "land.return", func() {}
	case <-time.After(after):
	}
	if err := cmd.Process.Signal(syscall.SIGSTOP); errors.Is(err, os.ErrProcessDone) {
		must(t, <-ended)
		return "land.return", func() {}
	}
	return fmt.Sprint("after ", after), func() {
		if err := cmd.Process.Kill(); !errors.Is(err, os.ErrProcessDone) { // it may have ended at that moment
			must(t, err)
		}
		<-ended //nolint:errcheck // it was killed
	}
}

// copy copies the image, as it is at one moment: nothing has changed between the copy and the comparison.
func (d *disk) copy(t *testing.T) {
	t.Helper()
	for range 100 {
		if out, err := exec.Command("cp", "--sparse=always", d.image, d.image+".cut").CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if exec.Command("cmp", "-s", d.image, d.image+".cut").Run() == nil {
			return
		}
	}
	t.Fatal("the disk is never idle")
}

// check examines the disk after the cut, recovers the landing, and repeats it if it did not take place.
func (d *disk) check(t *testing.T, task, point, tip, intentFile string) {
	t.Helper()
	if out, err := exec.Command("git", "-C", d.top, "fsck", "--no-dangling", "--no-progress").CombinedOutput(); err != nil {
		t.Errorf("%s: git fsck: %v: %s", point, err, out)
	}
	for i := range 30 {
		name := fmt.Sprintf("file%d.txt", i)
		is := read(t, filepath.Join(d.top, name))
		if is != fmt.Sprintln(task, i) && is != gitIn(t, d.top, "show", tip+":"+name)+"\n" {
			t.Errorf("%s: %s has %q", point, name, is)
		}
		if is, err := os.ReadFile(filepath.Join(d.top, task, fmt.Sprint(i))); err == nil && string(is) != fmt.Sprintln(task, i) {
			t.Errorf("%s: %s/%d has %q", point, task, i, is)
		}
	}
	r := value[*repo.Repo](t)(repo.Open(t.Context(), d.top))
	var intent integrate.Landing
	landed := false
	if err := file.ReadJSON(intentFile, &intent); err == nil {
		landed = value[bool](t)(land.RecoverLanding(t.Context(), r, intent))
	} else if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s: the record: %v", point, err)
	}
	if point == "land.return" && !landed {
		t.Errorf("%s: %s has not landed", point, task)
	}
	w := value[*repo.Worktree](t)(r.Find(t.Context(), task))
	if !landed {
		err := integrateAndLand(t.Context(), w, land.Squash, fileJournal{intentFile})
		if busy, ok := errors.AsType[*BusyError](err); ok { // the lock of the git process, which the message tells to remove
			must(t, os.Remove(busy.File))
			err = integrateAndLand(t.Context(), w, land.Squash, fileJournal{intentFile})
		}
		if err != nil {
			t.Fatalf("%s: %v", point, err)
		}
	}
	equal(t, point, gitIn(t, d.top, "rev-list", "--count", tip+"..main"), "1")
	equal(t, point, gitIn(t, d.top, "status", "--porcelain", "--untracked-files=no"), "")
	equal(t, point, read(t, filepath.Join(d.top, task, "29")), fmt.Sprintln(task, 29))
	for _, left := range value[[]string](t)(filepath.Glob(r.StatePath("moves", "[^.]*"))) { // temporary files begin with a dot
		t.Errorf("%s: left behind: %s", point, left)
	}
	value[string](t)(Remove(t.Context(), w, RemoveRequest{Landed: value[string](t)(w.Tip(t.Context()))}))
	pool.Wait(r)
	r.Store.Close()
}
