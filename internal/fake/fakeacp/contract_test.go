package fakeacp_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coven-run/coven/internal/fake/fakeacp"
	"github.com/coven-run/coven/internal/fake/fakeapi"
	"github.com/coven-run/coven/plugins/builtin/acp"
	"github.com/coven-run/coven/plugins/provider"
)

// TestMain runs the fake agent if the argument is a script.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && filepath.Ext(os.Args[1]) == ".yaml" {
		os.Exit(fakeacp.Main(os.Args[1:]))
	}
	os.Exit(m.Run())
}

// script defines the fake agent's behavior; scenario makes the real Qwen Code behave alike.
const script = `
loads: true
mode: auto
quits: true
conversations:
  - match: "Your last call failed or was refused: it is secret."
    steps:
      - ask: {id: c3, kind: execute, raw: {command: "touch ran"}}
      - {done: c3}
      - {text: Done.}
  - match: More
    steps:
      - {text: Nothing more.}
  - match: Write it
    steps:
      - {text: I begin.}
      - ask: {id: c1, kind: edit, raw: {file_path: "${CWD}/note", content: "new\n"}}
      - {method: fs/write_text_file, params: {path: "${CWD}/note", content: "new\n"}}
      - {done: c1}
      - {method: craft/drainMidTurnQueue, params: {}}
      - ask: {id: c2, kind: edit, raw: {file_path: "${CWD}/secret", content: "new\n"}}
`

const scenario = `
conversations:
  - match: Write it
    turns:
      - text: I begin.
        tools: [{name: Write, input: {file_path: "${CWD}/note", content: "new\n"}}]
      - tools: [{name: Write, input: {file_path: "${CWD}/secret", content: "new\n"}}]
      - tools: [{name: Bash, input: {command: "touch ran"}}]
      - text: Done.
      - text: Nothing more.
`

// The fake agent and the real Qwen Code send equivalent messages, as far as coven understands them. The session begins in a
// mode in which the agent would not ask, the client writes a file, a refused call ends the turn, and a loaded session is
// replayed first.
func TestContract(t *testing.T) {
	t.Run("fake", func(t *testing.T) {
		self, err := os.Executable()
		check(t, err)
		file := filepath.Join(t.TempDir(), "script.yaml")
		check(t, os.WriteFile(file, []byte(script), 0o600))
		contract(t, fmt.Sprintf(`{"command":[%q,%q],"env":["FAKEACP_STATE={state}"]}`, self, file), "http://127.0.0.1:1")
	})
	t.Run("real", func(t *testing.T) {
		cli := os.Getenv("COVEN_REAL_QWEN")
		if _, err := os.Stat(cli); err != nil {
			if os.Getenv("COVEN_REQUIRE_REAL_QWEN") != "" {
				t.Fatal("the real Qwen Code is required")
			}
			t.Skip("the real Qwen Code is not here: run .ci/qwen .tools, and set COVEN_REAL_QWEN")
		}
		cli, err := filepath.Abs(cli)
		check(t, err)
		parsed, err := fakeapi.Parse([]byte(scenario))
		check(t, err)
		api, err := fakeapi.New(parsed)
		check(t, err)
		defer func() { check(t, api.Close()) }()
		bin := t.TempDir()
		check(t, os.Symlink(cli, filepath.Join(bin, "qwen")))
		contract(t, fmt.Sprintf(`{"command":[%q,"--acp","--auth-type","openai"]}`, filepath.Join(bin, "qwen")), api.URL)
	})
}

func contract(t *testing.T, settings, api string) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	check(t, err)
	c := client{t: t, dir: dir, api: api, request: provider.Request{Prompt: "Write it", Dir: dir, StateDir: t.TempDir(), Tools: []string{provider.ToolWrite, provider.ToolBash}}}
	c.provider = acp.New(func(name string) string {
		if name == acp.Variable {
			return settings
		}
		return ""
	})
	got := c.converse()
	want := []string{
		"asked", "started", "asked", "asked", "said I begin.",
		"asked write note", "asked WriteFile", "result false",
		"asked", // an extension of the protocol
		"asked write secret refused", "result true",
		"asked", // to continue
		"asked bash touch ran", "result false",
		"said Done.", "end true",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "note")); string(text) != "new\n" {
		t.Errorf("note: %q, %v", text, err)
	}
	c.request.Prompt, c.request.Resume, c.request.Conversation = "More", true, c.session
	got = c.converse()
	started := slices.Index(got, "started")
	if len(got) < 3 || started < 1 || !strings.HasPrefix(got[1], "said I begin.") || got[started+1] != "asked" || got[len(got)-1] != "end true" {
		t.Errorf("resumed: %q", got)
	}
}

// client drives an agent as coven does, without a gate. It refuses requests that mention secret.
type client struct {
	t        *testing.T
	provider acp.Provider
	request  provider.Request
	dir, api string
	session  string
}

// converse returns the agent's events until its result, without its usage and without reads.
func (c *client) converse() (all []string) {
	c.t.Helper()
	command, err := c.provider.Command(c.t.Context(), c.request)
	check(c.t, err)
	cmd := exec.CommandContext(c.t.Context(), command.Argv[0], command.Argv[1:]...)
	cmd.Dir = c.dir
	cmd.Env = append(command.Env, "PATH="+os.Getenv("PATH"), "HOME="+c.request.StateDir, "OPENAI_API_KEY=x", "OPENAI_MODEL=m-1", "OPENAI_BASE_URL="+c.api+"/v1")
	in, err := cmd.StdinPipe()
	check(c.t, err)
	out, err := cmd.StdoutPipe()
	check(c.t, err)
	check(c.t, cmd.Start())
	defer func() { _ = cmd.Wait() }() // the exit status does not matter
	_, err = in.Write(command.Input)
	check(c.t, err)
	for lines := bufio.NewReader(out); ; {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			c.t.Errorf("the agent ended after %q", all)
			return all
		}
		events, err := c.provider.Parse(c.t.Context(), line)
		check(c.t, err)
		for _, e := range events {
			said, answer := c.take(e)
			if said != "" && (len(all) == 0 || !strings.HasPrefix(said, "said ") || !strings.HasPrefix(all[len(all)-1], "said ")) {
				all = append(all, said)
			} else if said != "" { // a continuation of the same text
				all[len(all)-1] += strings.TrimPrefix(said, "said ")
			}
			if _, over := e.(provider.Result); over {
				check(c.t, in.Close())
				return all
			}
			_, err := in.Write(answer)
			check(c.t, err)
		}
	}
}

// take describes an event and answers it.
func (c *client) take(e provider.Event) (said string, answer []byte) {
	switch e := e.(type) {
	case provider.Started:
		c.session += e.Conversation
		return "started", nil
	case provider.Chunk:
		return "said " + e.Text, nil
	case provider.ToolResult:
		return fmt.Sprintf("result %v", e.IsError), nil
	case provider.Result:
		return fmt.Sprintf("end %v", e.OK), nil
	case provider.Asked:
		a := provider.Answer{Request: c.request, Asked: e, Allowed: true}
		said = "asked"
		for _, call := range e.Calls {
			subject := strings.NewReplacer(c.dir+"/", "", `{"command":"`, "", `{"content":"new\n","path":"`, "", `{"path":"`, "", `"}`, "").Replace(string(call.Input))
			said += " " + call.Name + " " + subject
			if a.Allowed = subject != "secret"; !a.Allowed {
				a.Reason, said = "it is secret", said+" refused"
			}
		}
		switch do := e.Action.(type) {
		case provider.WriteFile:
			said += " WriteFile"
			check(c.t, os.WriteFile(do.Path, []byte(do.Content), 0o600))
		case provider.ReadFile:
			text, err := os.ReadFile(do.Path)
			said, a.Text, a.Allowed, a.NotFound = "", string(text), err == nil, os.IsNotExist(err)
		}
		reply, err := c.provider.Answer(c.t.Context(), a)
		check(c.t, err)
		return said, reply.Input
	}
	return "", nil
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
