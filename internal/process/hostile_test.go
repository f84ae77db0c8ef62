package process

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// Programs that try to survive by all means. Each one appends beats to a file.
var hostileScripts = map[string]string{
	"main.sh": `trap '' TERM HUP INT QUIT
for n in 1 2 3; do setsid sh "$1/sleeper.sh" "$1" & done
(setsid sh "$1/sleeper.sh" "$1" &)
for n in 1 2 3; do (setsid sh "$1/hopper.sh" "$1" &); done
read order
case $order in
exit) exit 7 ;;
die) kill -9 $$ ;;
esac
while :; do sleep 0.05; done
`,
	"sleeper.sh": `trap '' TERM HUP INT QUIT USR1 USR2
while :; do echo beat >>"$1/sleeper"; sleep 0.02; done
`,
	"hopper.sh": `trap '' TERM HUP INT QUIT USR1 USR2
echo beat >>"$1/hopper"
sleep 0.003
(setsid sh "$0" "$1" &)
`,
}

// hostile is a hostile tree. Its directory contains the beats.
type hostile struct{ dir string }

// newHostile creates a directory that any user can use.
func newHostile(t *testing.T) hostile {
	t.Helper()
	h := hostile{t.TempDir()}
	for name, script := range hostileScripts {
		if err := os.WriteFile(filepath.Join(h.dir, name), []byte(script), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for path, bits := range map[string]os.FileMode{h.dir: 0o777, filepath.Dir(h.dir): 0o755} {
		if err := os.Chmod(path, bits); err != nil {
			t.Fatal(err)
		}
	}
	return h
}

func (h hostile) argv() []string { return []string{"sh", filepath.Join(h.dir, "main.sh"), h.dir} }

func (h hostile) beats(kind string) int64 {
	info, err := os.Stat(filepath.Join(h.dir, kind))
	if err != nil {
		return 0
	}
	return info.Size()
}

func (h hostile) awaitBeating(t *testing.T) {
	t.Helper()
	eventually(t, "the hostile processes beat", func() bool {
		return h.beats("sleeper") > 50 && h.beats("hopper") > 50
	})
}

// still reports whether the beats have stopped. It can only sample them.
func (h hostile) still() bool {
	before := h.beats("sleeper") + h.beats("hopper")
	pass(500 * time.Millisecond)
	return h.beats("sleeper")+h.beats("hopper") == before
}

func (h hostile) assertDead(t *testing.T) {
	t.Helper()
	if !h.still() {
		t.Error("processes of the tree still beat")
	}
	for _, pid := range h.processes(t) {
		t.Errorf("process %d of the tree is alive", pid)
	}
}

// processes lists the processes with the directory in their command line.
func (h hostile) processes(t *testing.T) []int {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var pids []int
	for _, file := range files {
		line, err := os.ReadFile(file)
		if err != nil || !bytes.Contains(line, []byte(h.dir+"/")) {
			continue
		}
		pids = append(pids, must(strconv.Atoi(filepath.Base(filepath.Dir(file)))))
	}
	return pids
}
