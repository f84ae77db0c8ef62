package fakeapi_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coven-run/coven/internal/fake/fakeapi"
)

// The real CLIs must accept the answers of the fake API.
// The script is the same for all; only codex has no tool equivalent to Edit.
const contractScript = `
conversations:
- match: Do the thing
  turns:
  - text: I begin.
    tools: [{name: Write, input: {file_path: "${CWD}/a", content: "it's one\n"}}]
    usage: {input: 100, output: 7}
  - tools: [{name: Bash, input: {command: "cat a; exit 3"}}]
  - {fail: [{status: 500}], tools: [{name: Read, input: {file_path: "${CWD}/a"}}]}
  - text: "It said ${LAST_TOOL_RESULT}"
`

// TestQwen checks Chat Completions with the real Qwen Code CLI.
func TestQwen(t *testing.T) {
	contract(t, "qwen", `{"type":"user","message":{"role":"user","content":"Do the thing"},"parent_tool_use_id":null,"session_id":"s"}`,
		func(string) []string {
			return []string{"--auth-type", "openai", "--yolo", "--bare", "--input-format", "stream-json", "--output-format", "stream-json"}
		})
}

// TestCodex checks Responses with the real Codex CLI: with an unknown model, which
// gets the usual tools, and with its default model, which gets a tool that
// runs scripts.
func TestCodex(t *testing.T) {
	for _, model := range []string{"m-1", ""} {
		contract(t, "codex", "Do the thing", func(url string) []string {
			argv := []string{
				"exec", "--json", "--skip-git-repo-check", "-s", "danger-full-access", "--ignore-user-config",
				"-c", "model_provider=fake", "-c", `model_providers.fake={name="fake",base_url="` + url + `/v1",env_key="OPENAI_API_KEY",wire_api="responses"}`,
			}
			if model != "" {
				argv = append(argv, "-m", model)
			}
			return append(argv, "-")
		})
	}
}

func contract(t *testing.T, program, input string, argv func(url string) []string) {
	t.Helper()
	cli := realCLI(t, program)
	server := start(t, contractScript)
	root, err := filepath.EvalSymlinks(t.TempDir())
	check(t, err)
	home, dir := filepath.Join(root, "home"), filepath.Join(root, "work")
	check(t, os.Mkdir(home, 0o700))
	check(t, os.Mkdir(dir, 0o700))
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, cli, argv(server.URL)...)
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(input+"\n")
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + home, "LANG=C.UTF-8",
		"OPENAI_API_KEY=dummy", "OPENAI_BASE_URL=" + server.URL + "/v1", "OPENAI_MODEL=m-1",
	}
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if !strings.Contains(string(out), "It said ") || !strings.Contains(string(out), "it's one") {
		t.Errorf("the last answer did not come:\n%s", out)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "a")); err != nil || string(got) != "it's one\n" {
		t.Errorf("the file is %q, %v", got, err)
	}
	var turns []int
	for _, request := range server.Requests() {
		if request.Kind == fakeapi.KindTurn && request.Status == 200 {
			turns = append(turns, request.Turn)
			if request.Conversation != 0 {
				t.Errorf("the prompt was not recognized: %+v", request.Messages)
			}
		}
	}
	if len(turns) != 4 || turns[0] != 0 || turns[3] != 3 {
		t.Errorf("turns %v were asked for", turns)
	}
}

// realCLI returns the path of the real program.
func realCLI(t *testing.T, program string) string {
	t.Helper()
	name := "REAL_" + strings.ToUpper(program)
	cli := os.Getenv("COVEN_" + name)
	if _, err := os.Stat(cli); err != nil {
		if os.Getenv("COVEN_REQUIRE_"+name) != "" {
			t.Fatalf("the real %s is required: %v", program, err)
		}
		t.Skipf("the real %s is not here: make stories brings qwen, make e2e-codex codex", program)
	}
	cli, err := filepath.Abs(cli)
	check(t, err)
	return cli
}
