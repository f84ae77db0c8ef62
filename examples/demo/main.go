// Command demo shows coven's main job in a scratch repository: two tasks, run by the
// real Claude Code CLI against a scripted model API on this machine, so that it needs
// no account and costs nothing. Run it with make demo.
package main

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/coven-run/coven/internal/fake/fakeapi"
	"github.com/coven-run/coven/internal/fake/fakeclaude"
	"github.com/coven-run/coven/internal/text/shellword"
)

//go:embed scenario.yaml
var scenario []byte

func main() {
	if filepath.Base(os.Args[0]) == "claude" { // the stand-in for the agent CLI
		os.Exit(fakeclaude.Main(os.Args[1:]))
	}
	d := &demo{out: os.Stdout}
	flag.StringVar(&d.coven, "coven", "bin/coven", "path of the coven binary")
	flag.StringVar(&d.claude, "claude", "", "path of the Claude Code CLI; without it, a stub is used")
	flag.BoolVar(&d.real, "real", false, "use your own login; this costs money")
	picture := flag.String("picture", "", "run one task on a terminal instead, and draw its screen in this SVG `FILE`")
	flag.Parse()
	if *picture != "" {
		d.out = io.Discard
	}
	err := d.run(context.Background(), *picture)
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

type demo struct {
	coven, claude string
	real          bool
	out           io.Writer

	dir, repo string
	stub      bool // stands in for the agent CLI
	env       []string
}

// run runs the demo. If picture is not empty, it draws a picture in that file instead.
func (d *demo) run(ctx context.Context, picture string) error {
	if err := d.prepare(); err != nil {
		return err
	}
	if !d.real {
		api, err := d.model()
		if err != nil {
			return err
		}
		defer api.Close() //nolint:errcheck // the demo is over
	}
	if err := d.repository(ctx); err != nil {
		return err
	}
	if picture != "" {
		return errors.Join(d.draw(ctx, picture), os.RemoveAll(d.dir))
	}
	if err := d.introduce(); err != nil {
		return err
	}
	if err := d.tasks(ctx); err != nil {
		return err
	}
	if err := d.show(ctx, "coven", "run", "--auto-approve"); err != nil {
		return err
	}
	return d.result(ctx)
}

// prepare creates the scratch directory and finds the programs.
func (d *demo) prepare() error {
	coven, err := filepath.Abs(d.coven)
	if err != nil {
		return fmt.Errorf("find coven: %w", err)
	}
	if d.dir, err = os.MkdirTemp("", "coven-demo-"); err != nil {
		return fmt.Errorf("make a scratch directory: %w", err)
	}
	d.repo = filepath.Join(d.dir, "greeter")
	bin, home := filepath.Join(d.dir, "bin"), filepath.Join(d.dir, "home")
	if err := errors.Join(os.Mkdir(bin, 0o755), os.Mkdir(home, 0o755), os.Symlink(coven, filepath.Join(bin, "coven"))); err != nil {
		return fmt.Errorf("prepare: %w", err)
	}
	d.env = append(os.Environ(), "GIT_PAGER=cat", "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	if d.real {
		return nil
	}
	d.env = append(d.env,
		"HOME="+home, "XDG_CONFIG_HOME="+home, "GIT_CONFIG_GLOBAL="+os.DevNull,
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "CLAUDE_CONFIG_DIR="+filepath.Join(home, ".claude"))
	return d.agentCLI(filepath.Join(bin, "claude"))
}

// agentCLI puts the agent CLI on the demo's PATH.
func (d *demo) agentCLI(place string) error {
	cli, err := filepath.Abs(d.claude)
	if err != nil {
		return fmt.Errorf("find the agent CLI: %w", err)
	}
	if _, err := os.Stat(cli); d.claude == "" || err != nil {
		d.stub = true
		if cli, err = os.Executable(); err != nil {
			return fmt.Errorf("find the stand-in: %w", err)
		}
	}
	if err := os.Symlink(cli, place); err != nil {
		return fmt.Errorf("prepare: %w", err)
	}
	return nil
}

// model starts the scripted model API.
func (d *demo) model() (*fakeapi.Server, error) {
	s, err := fakeapi.Parse(scenario)
	if err != nil {
		return nil, err
	}
	api, err := fakeapi.New(s)
	if err != nil {
		return nil, err
	}
	d.env = append(d.env, "ANTHROPIC_BASE_URL="+api.URL, "ANTHROPIC_API_KEY=none")
	return api, nil
}

// testScript tests the scripts that exist.
const testScript = `#!/bin/sh
set -e
[ "$(sh greet.sh)" = hello ]
[ ! -e name.sh ] || [ "$(sh name.sh Ada)" = 'hello Ada' ] || { echo 'FAIL: name.sh Ada'; exit 1; }
[ ! -e bye.sh ] || [ "$(sh bye.sh Ada)" = 'goodbye Ada' ] || { echo 'FAIL: bye.sh Ada'; exit 1; }
echo all tests pass
`

// repository creates a small program with a test.
func (d *demo) repository(ctx context.Context) error {
	files := map[string]string{
		"greet.sh": "#!/bin/sh\necho hello\n",
		"test.sh":  testScript,
		"Makefile": "test:\n\t@sh test.sh\n",
	}
	if err := os.Mkdir(d.repo, 0o755); err != nil {
		return fmt.Errorf("make the repository: %w", err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(d.repo, name), []byte(text), 0o755); err != nil { //nolint:gosec // scripts
			return fmt.Errorf("make the repository: %w", err)
		}
	}
	for _, args := range [][]string{
		{"init", "-q", "-b", "main"},
		{"config", "user.name", "Demo"},
		{"config", "user.email", "demo@example.invalid"},
		{"add", "-A"},
		{"commit", "-q", "-m", "A greeter"},
	} {
		if err := d.quiet(ctx, "git", args...); err != nil {
			return err
		}
	}
	return nil
}

// introduce says what will happen.
func (d *demo) introduce() error {
	agent, cost := "the real Claude Code CLI", "a scripted model API on this machine answers it: no account, no cost"
	switch {
	case d.real:
		cost = "with your login: this costs a few cents"
	case d.stub:
		agent = "a stub of the Claude Code CLI"
	}
	_, err := fmt.Fprintf(d.out, `
coven turns two tasks into merged changes in a scratch repository:
  repository  %s
  agent       %s
              %s
`, d.repo, agent, cost)
	return err
}

// tasks adds two tasks and lists them.
func (d *demo) tasks(ctx context.Context) error {
	first := []string{"task", "add", "Greet a person by name", "-d", "A script name.sh that greets its first argument.", "--accept", "name.sh Ada prints: hello Ada"}
	if err := d.show(ctx, "coven", first...); err != nil {
		return err
	}
	if err := d.show(ctx, "coven", "task", "add", "Write a README", "--accept", "it says how to run the greeter"); err != nil {
		return err
	}
	return d.show(ctx, "coven", "task", "ready")
}

// result shows the result and what to try next.
func (d *demo) result(ctx context.Context) error {
	for _, line := range [][]string{
		{"git", "log", "--oneline"},
		{"git", "show", "--oneline"},
		{"coven", "status"},
	} {
		if err := d.show(ctx, line[0], line[1:]...); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(d.out, `
Both changes were checked, reviewed, fixed where needed, and landed on main.
The scratch repository stays until you remove it: rm -rf %s

Next, in a repository of your own, with your login:
  install %s ~/.local/bin/    put coven on your PATH
  coven doctor                           check what coven needs
  coven run -p "add a --version flag"    one task; you are asked before it lands
  coven help day                         a day with coven
`, d.dir, d.coven)
	return err
}

// show prints a command and runs it.
func (d *demo) show(ctx context.Context, name string, args ...string) error {
	if _, err := fmt.Fprintf(d.out, "\n$ %s\n", commandLine(name, args)); err != nil {
		return err
	}
	return d.quiet(ctx, name, args...)
}

// commandLine returns a command as one types it in a shell.
func commandLine(name string, args []string) string {
	return strings.Join(append([]string{name}, quoted(args)...), " ")
}

func (d *demo) quiet(ctx context.Context, name string, args ...string) error {
	path, err := d.find(name)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Dir, cmd.Env = d.repo, d.env
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, d.out, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return nil
}

// find looks a program up on the demo's own PATH.
func (d *demo) find(name string) (string, error) {
	if name == "coven" {
		return filepath.Join(d.dir, "bin", name), nil
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("find %s: %w", name, err)
	}
	return path, nil
}

func quoted(args []string) []string {
	out := make([]string, len(args))
	for i, a := range args {
		out[i] = shellword.Word(a)
	}
	return out
}
