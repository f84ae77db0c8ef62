package e2e_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// block is a block of commands of the guide.
var block = regexp.MustCompile("(?s)\n```sh\n(.*?)```")

// TestRunbook plays the commands of docs/guides/workers.md: the machine of the second part first, since that of the first needs one. Then it drains the
// machine, as the guide says.
func TestRunbook(t *testing.T) {
	text, err := os.ReadFile("../../docs/guides/workers.md")
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, "conversations:\n- match: add a --version flag\n  turns:\n  - tools: [{name: bash, input: {command: 'echo v1 > version'}}]\n  - text: done\n", files())
	var commands []string
	for _, b := range block.FindAllStringSubmatch(string(text), -1) {
		for line := range strings.Lines(b[1]) {
			line, _, _ = strings.Cut(strings.ReplaceAll(strings.TrimSpace(line), "127.0.0.1:7233", w.server.Address()), "   #")
			commands = append(commands, line)
		}
	}
	// play plays a command of the guide, which is there once.
	play := func(at *place, prefix string, code int) string {
		t.Helper()
		i := slices.IndexFunc(commands, func(c string) bool { return strings.HasPrefix(c, prefix) })
		if i < 0 {
			t.Fatalf("the guide has no command %s; left: %q", prefix, commands)
		}
		line := commands[i]
		commands = slices.Delete(commands, i, i+1)
		if strings.HasPrefix(line, "coven run ") {
			line += " --yes --grimoire asked" // a person agrees on the terminal
		}
		return at.start("sh", "-c", line).wait(code)
	}
	machine := w.newPlace("machine")
	w.contains(play(w.desk, "coven worker namespace", 0), "namespace coven on "+w.server.Address())
	i := slices.IndexFunc(commands, func(c string) bool { return strings.HasSuffix(c, " -j 4") })
	if i < 0 || len(strings.Fields(commands[i])) != 6 {
		t.Fatalf("the guide starts no machine: %q", commands)
	}
	worker := machine.start("sh", "-c", "exec "+commands[i])
	commands = slices.Delete(commands, i, i+1)
	worker.says(" serves 127.0.0.1/acme/shop.git on .*, 4 at once")
	play(w.desk, "coven config set --user run.remote", 0)
	play(w.desk, "coven config set --user run.on", 0)
	w.contains(play(w.desk, "coven run -p", 3), "waiting (review)")
	w.contains(play(w.desk, "coven worker list", 0), "waiting (review)", "machine ", "serves plan-")
	w.contains(w.desk.coven("doctor").wait(0), "workers", "machines serve this repository")
	w.desk.coven("approve", "--all").wait(0)
	w.contains(w.git(w.desk.dir, "ls-remote", "origin"), "refs/heads/main")
	if left := w.live(); left != "" {
		t.Errorf("the origin keeps %s", left)
	}
	worker.signal(syscall.SIGTERM)
	worker.wait(0)
	if len(commands) != 1 || !strings.HasPrefix(commands[0], "go install github.com/coven-run/coven/distributed/cmd/coven-worker@") {
		t.Errorf("not played: %q", commands)
	}
}
