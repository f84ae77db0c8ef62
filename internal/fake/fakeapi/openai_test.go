package fakeapi_test

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/coven-run/coven/internal/fake/fakeapi"
)

const openAIScript = `
conversations:
- match: the task
  turns:
  - {text: one, tools: [{name: Bash, input: {command: ls}}, {name: other, input: {a: 1}}], usage: {input: 7, output: 3}}
  - {fail: [{status: 429, retry_after: 2s}], text: "it said ${LAST_TOOL_RESULT} in ${CWD}"}
`

func ask(t *testing.T, server *fakeapi.Server, path, body string) *http.Response {
	t.Helper()
	response, err := http.Post(server.URL+path, "application/json", strings.NewReader(body))
	check(t, err)
	t.Cleanup(func() { _ = response.Body.Close() }) // only read
	return response
}

// data returns the events of a stream.
func data(t *testing.T, body io.Reader) []string {
	t.Helper()
	var all []string
	scanner := bufio.NewScanner(body)
	for scanner.Scan() {
		if event, found := strings.CutPrefix(scanner.Text(), "data: "); found {
			all = append(all, event)
		}
	}
	check(t, scanner.Err())
	return all
}

const (
	chatFirst = `{"role":"system","content":"be good"},
		{"role":"user","content":[{"type":"text","text":"This is the Qwen Code. We are setting up the context for our chat.\nI'm currently working in the directory: /tree\nmore"}]},
		{"role":"assistant","content":"Got it. Thanks for the context!"},
		{"role":"user","content":"the task"}`
	chatSecond = chatFirst + `,
		{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"run_shell_command","arguments":"{\"command\":\"ls\"}"}}]},
		{"role":"tool","tool_call_id":"c1","content":[{"type":"text","text":"a file"}]}`
	chatTools = `"tools":[{"type":"function","function":{"name":"run_shell_command"}}]`
)

func TestChatStream(t *testing.T) {
	server := start(t, openAIScript)
	response := ask(t, server, "/v1/chat/completions", `{"model":"m-1","stream":true,"stream_options":{"include_usage":true},"messages":[`+chatFirst+`],`+chatTools+`}`)
	events := data(t, response.Body)
	if last := events[len(events)-1]; last != "[DONE]" {
		t.Errorf("the stream ends with %s", last)
	}
	var text, finish string
	calls := map[int]string{}
	usage := 0
	for _, event := range events[:len(events)-1] {
		var piece struct {
			Model   string
			Choices []struct {
				Delta struct {
					Content   string
					ToolCalls []struct {
						Index    int
						Function struct{ Name, Arguments string }
					} `json:"tool_calls"`
				}
				Finish string `json:"finish_reason"`
			}
			Usage struct {
				Total int `json:"total_tokens"`
			}
		}
		check(t, json.Unmarshal([]byte(event), &piece))
		usage += piece.Usage.Total
		for _, choice := range piece.Choices {
			text += choice.Delta.Content
			finish += choice.Finish
			for _, call := range choice.Delta.ToolCalls {
				calls[call.Index] += call.Function.Name + call.Function.Arguments
			}
		}
	}
	want := map[int]string{0: `run_shell_command{"command":"ls","description":"scripted","is_background":false}`, 1: `other{"a":1}`}
	if text != "one" || finish != "tool_calls" || usage != 10 || !reflect.DeepEqual(calls, want) {
		t.Errorf("text %q, finish %q, usage %d, calls %v", text, finish, usage, calls)
	}
	request := server.Requests()[0]
	if request.Kind != fakeapi.KindTurn || request.System != "be good" || request.Turn != 0 || !slices.Equal(request.Tools, []string{"run_shell_command"}) {
		t.Errorf("%+v", request)
	}
}

func TestChatWhole(t *testing.T) {
	server := start(t, openAIScript)
	var answer struct {
		Choices []struct{ Message struct{ Content string } }
		Error   struct{ Message, Code string }
	}
	body := `{"model":"m-1","messages":[` + chatSecond + `],` + chatTools + `}`
	response := ask(t, server, "/v1/chat/completions", body)
	check(t, json.NewDecoder(response.Body).Decode(&answer))
	if response.StatusCode != http.StatusTooManyRequests || response.Header.Get("Retry-After") != "2" || answer.Error.Code != "rate_limit_exceeded" {
		t.Errorf("%d %v %+v", response.StatusCode, response.Header, answer)
	}
	check(t, json.NewDecoder(ask(t, server, "/v1/chat/completions", body).Body).Decode(&answer))
	if len(answer.Choices) != 1 || answer.Choices[0].Message.Content != "it said a file in /tree" {
		t.Errorf("%+v", answer)
	}
	if request := server.Requests()[1]; request.Turn != 1 || request.Messages[3].Content[0].Name != "run_shell_command" {
		t.Errorf("%+v", request)
	}
}

const (
	inputFirst = `{"type":"additional_tools","role":"developer","tools":[{"type":"namespace","name":"functions","tools":[{"type":"custom","name":"exec"}]}]},
		{"type":"message","role":"developer","content":[{"type":"input_text","text":"be good"}]},
		{"type":"message","role":"user","content":[{"type":"input_text","text":"<environment_context>\n<cwd>/tree</cwd></environment_context>"}]},
		{"type":"message","role":"user","content":[{"type":"input_text","text":"the task"}]}`
	inputSecond = inputFirst + `,
		{"type":"message","role":"assistant","content":[{"type":"output_text","text":"one"}]},
		{"type":"reasoning","summary":[]},
		{"type":"custom_tool_call","call_id":"c1","name":"exec","input":"text(1)"},
		{"type":"function_call","call_id":"c2","name":"other","arguments":"{\"a\":1}"},
		{"type":"custom_tool_call_output","call_id":"c1","output":[{"type":"input_text","text":"first"}]},
		{"type":"function_call_output","call_id":"c2","output":"second"}`
)

func TestResponsesStream(t *testing.T) {
	server := start(t, openAIScript)
	response := ask(t, server, "/v1/responses", `{"model":"m-1","stream":true,"input":[`+inputFirst+`]}`)
	var kinds, done []string
	for _, event := range data(t, response.Body) {
		var e struct {
			Type  string
			Delta string
			Item  struct {
				Type, Name, Input, Arguments string
				Content                      []struct{ Text string }
			}
			Response struct {
				Output []any
				Usage  struct {
					Total int `json:"total_tokens"`
				}
			}
		}
		check(t, json.Unmarshal([]byte(event), &e))
		kinds = append(kinds, strings.TrimPrefix(e.Type, "response."))
		switch e.Type {
		case "response.output_item.done":
			text := e.Item.Name + e.Item.Input + e.Item.Arguments
			for _, part := range e.Item.Content {
				text += part.Text
			}
			done = append(done, e.Item.Type+" "+text)
		case "response.completed":
			if len(e.Response.Output) != 3 || e.Response.Usage.Total != 10 {
				t.Errorf("%s", event)
			}
		}
	}
	if want := []string{
		"created", "output_item.added", "output_text.delta", "output_item.done", "output_item.added", "output_item.done",
		"output_item.added", "output_item.done", "completed",
	}; !slices.Equal(kinds, want) {
		t.Errorf("got  %q\nwant %q", kinds, want)
	}
	if want := []string{
		"message one", `custom_tool_call exectext(await tools.exec_command({cmd: "ls"}));`, `function_call other{"a":1}`,
	}; !slices.Equal(done, want) {
		t.Errorf("got  %q\nwant %q", done, want)
	}
}

// Consecutive items of the model become one answer.
func TestResponsesWhole(t *testing.T) {
	server := start(t, openAIScript)
	body := `{"model":"m-1","instructions":"first of all","input":[` + inputSecond + `]}`
	if got := ask(t, server, "/v1/responses", body).StatusCode; got != 429 {
		t.Errorf("status %d", got)
	}
	var answer struct {
		Output []struct{ Content []struct{ Text string } }
	}
	check(t, json.NewDecoder(ask(t, server, "/v1/responses", body).Body).Decode(&answer))
	if len(answer.Output) != 1 || answer.Output[0].Content[0].Text != "it said second in /tree" {
		t.Errorf("%+v", answer)
	}
	request := server.Requests()[1]
	if request.Turn != 1 || request.System != "first of all\nbe good" || len(request.Messages) != 3 || !slices.Equal(request.Tools, []string{"exec"}) {
		t.Errorf("%+v", request)
	}
	text := ask(t, server, "/v1/responses", `{"model":"m-1","input":"the task"}`)
	if got := server.Requests()[2]; text.StatusCode != http.StatusOK || got.Turn != 0 || got.Conversation != 0 {
		t.Errorf("%d, %+v", text.StatusCode, got)
	}
	for _, path := range []string{"/v1/responses", "/v1/chat/completions"} {
		if got := ask(t, server, path, "{").StatusCode; got != http.StatusBadRequest {
			t.Errorf("%s: broken JSON: %d", path, got)
		}
	}
}

func TestCutStreams(t *testing.T) {
	for path, body := range map[string]string{
		"/v1/chat/completions": `{"model":"m","stream":true,"messages":[{"role":"user","content":"x"}]}`,
		"/v1/responses":        `{"model":"m","stream":true,"input":"x"}`,
	} {
		for _, script := range []string{
			`conversations: [{turns: [{text: whole, tools: [{name: Bash, input: {command: ls}}], cut: true}]}]`,
			`conversations: [{turns: [{text: whole, cut: true}]}]`,
		} {
			got, err := io.ReadAll(ask(t, start(t, script), path, body).Body)
			if err == nil || !strings.Contains(string(got), "whole") || strings.Contains(string(got), "DONE") || strings.Contains(string(got), "completed\"") && path == "/v1/chat/completions" {
				t.Errorf("%s: error %v after %s", path, err, got)
			}
		}
	}
}
