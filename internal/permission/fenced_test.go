package permission_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coven-run/coven/internal/permission"
	"github.com/coven-run/coven/internal/process"
)

// TestMain also makes the test binary the launcher of children.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "exec" {
		os.Exit(process.Main(os.Args[2:]))
	}
	os.Exit(m.Run())
}

// each runs the scripts of a directory with bash. A script may leave a process behind that runs a
// denied command during the next script, so the environment names the script.
const each = `echo x >"$OUTSIDE"; echo x >"$INSIDE"; cd scratch; for f in ../commands/*; do COMMAND=${f##*/} timeout -s KILL 5 bash "$f" </dev/null >/dev/null 2>&1; done; true`

// generatedCommands returns the number of commands to generate; make long runs 2000.
func generatedCommands() int {
	if os.Getenv("COVEN_LONG") != "" {
		return 2000
	}
	return 300
}

// A generated shell command that the policy allows never runs a command that the policy denies. The
// test runs allowed and refused commands inside the fence. Many refused commands do run a denied one,
// which shows that the generator is effective.
func TestGeneratedCommandsInTheFence(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat("/sys/kernel/security/landlock"); err != nil && !fenced(t) {
		t.Skip("this machine cannot hold programs in a fence")
	}
	y := newYard(t)
	policy := &permission.Policy{Root: filepath.Join(y.dir, "scratch"), Agent: "a", Layers: []permission.Layer{
		permission.Granting("granted", permission.FileRead, permission.FileWrite, permission.BashExecute),
		{Name: "yours", Rules: []permission.Rule{{Permission: permission.BashExecute, Pattern: "forbidden *", Action: permission.Deny}}},
	}}
	g := generator{rand.New(rand.NewPCG(17, 3))} //nolint:gosec // fixed seed
	commands, allowed := map[string]string{}, map[string]bool{}
	for i := range generatedCommands() {
		name, command := fmt.Sprintf("%04d", i), g.command(3)
		commands[name] = command
		allowed[name] = policy.Decide(permission.Request{Permission: permission.BashExecute, Command: command}).Allowed()
		if err := os.WriteFile(filepath.Join(y.dir, "commands", name), []byte(command+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ran := y.run(t, bash)
	okay, denied := 0, 0
	for name, ok := range allowed {
		if ok {
			okay++
		}
		switch {
		case ok && ran[name]:
			t.Errorf("this is allowed, and runs what is denied:\n%s", commands[name])
		case ran[name]:
			denied++
		}
	}
	t.Logf("%d of %d commands are allowed; %d of the others run what is denied", okay, len(commands), denied)
	if okay < len(commands)/10 || denied < len(commands)/4 {
		t.Errorf("%d allowed, and %d that run what is denied, are too few", okay, denied)
	}
}

// yard is a directory with a forbidden program and a place where commands may write.
type yard struct {
	dir      string
	launcher *process.Launcher
}

func newYard(t *testing.T) yard {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, sub := range []string{"bin", "commands", "scratch", "marker"} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	script := "#!/bin/sh\n: >" + filepath.Join(dir, "marker") + "/$COMMAND\n"
	if err := os.WriteFile(filepath.Join(dir, "bin", "forbidden"), []byte(script), 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	launcher, err := process.NewLauncher("/proc/self/exe", "exec")
	if err != nil {
		t.Fatal(err)
	}
	return yard{dir, launcher}
}

// run runs all commands in the fence and returns those that ran the forbidden program.
func (y yard) run(t *testing.T, bash string) map[string]bool {
	t.Helper()
	in := func(name string) string { return filepath.Join(y.dir, name) }
	ended, out, err := y.launcher.Run(t.Context(), process.Spec{
		Argv: []string{bash, "-c", each}, Dir: y.dir,
		Env:      []string{"PATH=" + in("bin") + ":/usr/bin:/bin", "HOME=" + in("scratch"), "OUTSIDE=" + in("outside"), "INSIDE=" + in("scratch/inside")},
		Boundary: &process.Boundary{Write: []string{in("scratch"), in("marker")}},
	})
	if err != nil || ended.Code != 0 {
		t.Fatalf("%+v %v\n%s", ended, err, out)
	}
	if _, err := os.Stat(in("outside")); err == nil {
		t.Fatal("the commands did not run in the fence")
	}
	if _, err := os.Stat(in("scratch/inside")); err != nil {
		t.Fatal(err)
	}
	markers, err := os.ReadDir(in("marker"))
	if err != nil {
		t.Fatal(err)
	}
	ran := map[string]bool{}
	for _, marker := range markers {
		ran[marker.Name()] = true
	}
	return ran
}

// generator generates shell commands. Some of them run a denied command.
type generator struct{ *rand.Rand }

func (g generator) of(all ...string) string { return all[g.IntN(len(all))] }

// word writes a word in one of several equivalent shell notations.
func (g generator) word(w string) string {
	at := 1 + g.IntN(len(w)-1)
	a, b := w[:at], w[at:]
	return g.of(w, w, "'"+w+"'", `"`+w+`"`, a+"'"+b+"'", a+`""`+b, `"`+a+`"'`+b+`'`, `\`+w, a+`\`+b, a+"\\\n"+b,
		fmt.Sprintf(`$'\x%02x%s'`, w[0], w[1:]), fmt.Sprintf(`$'\%03o'%s`, w[0], w[1:]), "${unset-"+w+"}", "${unset:-"+a+"}"+b, "$(echo "+w+")",
		"`echo "+w+"`", `"$(printf %s `+w+`)"`, a+"$unset"+b, "{"+w+",}", `$"`+w+`"`)
}

// simple generates a command that is not nested.
func (g generator) simple() string {
	if g.IntN(3) > 0 {
		return g.of(
			"echo "+g.word("hello"), "true", ":", "printf '%s\\n' "+g.word("forbidden"), "test -e "+g.word("file"), "cat </dev/null",
			"echo 'a; forbidden' \"b && forbidden\"", "cat <<'EOF'\n$(forbidden)\nEOF", "x="+g.word("value"), "grep -r "+g.word("forbidden")+" .", "ls # forbidden",
			"cat <<EOF\nforbidden\nEOF", "echo a >"+g.word("file"), "pwd", "false",
		)
	}
	f := g.word("forbidden")
	return g.of(f, f, f+" a", "x=1 "+f, f+" >/dev/null", "! "+f, "x=forbidden; $x", "x=forbid y=den; $x$y", "eval "+f, "sh -c "+f, "env "+f, "echo a | xargs "+f,
		"command "+f, "exec "+f, "set -- "+f+"; \"$@\"", "trap "+f+" EXIT", "nohup "+f, "bash <<< "+f, "echo "+f+" | sh", "timeout 5 "+f, "find . -maxdepth 0 -exec "+f+" \\;")
}

// command generates nested commands up to a depth.
func (g generator) command(depth int) string {
	if depth == 0 || g.IntN(4) == 0 {
		return g.simple()
	}
	form := g.of("%s; %s", "%s\n%s", "{ %s\n}", "( %s\n)", "%s\n%s | cat", "if true; then\n%s\nelse\n%s\nfi", "if %s\nthen :; fi", "for i in a b; do\n%s\ndone",
		"case a in a) %s\n;; esac", "f() {\n%s\n}; f", "true && {\n%s\n}", "false || (\n%s\n)", "echo \"$(\n%s\n)\"", "x=$(\n%s\n)",
		"echo \"a$(\n%s\n)b\" 'c'", "cat <<EOF\na $(\n%s\n)\nEOF", "cat <<-EOF\n\t$(\n%s\n)\nEOF", "cat <<'EOF'\n%s\nEOF", "cat <(\n%s\n)", "cat <<< \"$(\n%s\n)\"", "{ %s\n} &\nwait",
		"echo $((1 + $(\n%s\necho 1)))", "[[ -n $(\n%s\n) ]]", "a=(x $(\n%s\n))", "echo ${unset:-$(\n%s\n)}", "true | while read x; do :; done\n%s")
	args := make([]any, strings.Count(form, "%s"))
	for i := range args {
		args[i] = g.command(depth - 1)
	}
	return fmt.Sprintf(form, args...)
}

// fenced reports whether the kernel supports the boundary.
func fenced(t *testing.T) bool {
	t.Helper()
	launcher, err := process.NewLauncher("/proc/self/exe", "exec")
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = launcher.Run(t.Context(), process.Spec{Argv: []string{"/bin/true"}, Boundary: &process.Boundary{}})
	return err == nil
}
