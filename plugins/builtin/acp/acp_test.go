package acp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/coven-run/coven/plugins/pluginerr"
	"github.com/coven-run/coven/plugins/provider"
)

// driver returns the provider for an agent that coven does not know.
func driver(settings string) Provider {
	return Provider{Getenv: func(name string) string {
		if name == Variable {
			return settings
		}
		return ""
	}}
}

var one = driver(`{"command":["agent","--acp"],"env":["HOME_OF_AGENT={state}/x"],"pass":["KEY"],"logins":["/home/a/login"]}`)

func TestCommand(t *testing.T) {
	req := provider.Request{Prompt: "/clear", StateDir: "/state", Tools: []string{provider.ToolRead, provider.ToolWrite}}
	cmd, err := one.Command(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	want := provider.Command{
		Argv: []string{"agent", "--acp"}, Env: []string{"HOME_OF_AGENT=/state/x"}, Pass: []string{"KEY"}, Logins: []string{"/home/a/login"},
		Account: "agent", Server: true, Input: cmd.Input,
	}
	if !reflect.DeepEqual(cmd, want) {
		t.Errorf("got  %+v\nwant %+v", cmd, want)
	}
	if text := string(cmd.Input); !strings.Contains(text, `"method":"initialize"`) || !strings.Contains(text, `"writeTextFile":true`) || !strings.HasSuffix(text, "}\n") {
		t.Errorf("input %s", text)
	}
	req.Tools = req.Tools[:1]
	if cmd, err = one.Command(t.Context(), req); err != nil || bytes.Contains(cmd.Input, []byte("writeTextFile")) || bytes.Contains(cmd.Input, []byte(`"terminal"`)) {
		t.Errorf("an agent that may only read is offered more: %s (%v)", cmd.Input, err)
	}
	for _, settings := range []string{"", "{}", "x", `{"command":[]}`} {
		if _, err := driver(settings).Command(t.Context(), req); !errors.Is(err, pluginerr.ErrInvalid) {
			t.Errorf("settings %q: %v", settings, err)
		}
	}
	cmd, err = driver(`{"command":["/opt/bin/qwen","--acp"]}`).Command(t.Context(), req)
	if err != nil || cmd.Account != "openai" || !slices.Contains(cmd.Env, "QWEN_HOME=/state") || !slices.Contains(cmd.Pass, "OPENAI_API_KEY") {
		t.Errorf("a known agent: %+v, %v", cmd, err)
	}
	if _, err := one.Message(t.Context(), provider.Message{ID: "m", Text: "x"}); !errors.Is(err, pluginerr.ErrUnsupported) {
		t.Errorf("a message: %v", err)
	}
}

// describe returns a short form of an event.
func describe(e provider.Event) string {
	switch e := e.(type) {
	case provider.Started:
		return fmt.Sprintf("started %s", e.Model)
	case provider.Chunk:
		return "said " + e.Text
	case provider.ToolCall:
		return fmt.Sprintf("call %s %s", e.Name, e.Input)
	case provider.ToolResult:
		return fmt.Sprintf("result %v", e.IsError)
	case provider.Spent:
		return fmt.Sprintf("spent %d", e.Usage.Tokens())
	case provider.Result:
		return fmt.Sprintf("end %v", e.OK)
	case provider.Asked:
		var calls []string
		for _, c := range e.Calls {
			calls = append(calls, fmt.Sprintf(" %s %s", c.Name, c.Input))
		}
		if e.Action != nil {
			calls = append(calls, fmt.Sprintf(" %T", e.Action))
		}
		return "asked" + strings.Join(calls, ",")
	}
	return fmt.Sprintf("%+v", e)
}

// TestRecorded parses the recorded output of Qwen Code.
func TestRecorded(t *testing.T) {
	text, err := os.ReadFile("testdata/qwen.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	events, err := one.Parse(t.Context(), text)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range events {
		got = append(got, describe(e))
	}
	want := []string{
		"asked", "started m-1", "asked",
		"said I begin.", "spent 110", `call read {"path":"/w/README"}`, "asked provider.ReadFile", "result false",
		"spent 110", `asked write {"content":"a new file\n","path":"/w/out.txt"}`, "asked provider.WriteFile", "result false",
		"spent 110", "asked provider.ReadFile", `asked edit {"newText":"bye\n","oldText":"hello\n","path":"/w/README"}`, "asked provider.ReadFile", "asked provider.WriteFile", "result false",
		"spent 110", `asked bash {"command":"echo ran \u003e ran.txt; cat README"}`, "result false",
		"spent 110", `asked fetch {"url":"https://example.com/x"}`, "result true",
		"spent 110", `call grep {"pattern":"hello"}`, "result false",
		"spent 110", "said I am done.", "spent 110", "end true",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// parse returns the only event of a line.
func parse(t *testing.T, text string) provider.Event {
	t.Helper()
	events, err := one.Parse(t.Context(), []byte(text+"\n"))
	if err != nil || len(events) != 1 {
		t.Fatalf("%s: %+v, %v", text, events, err)
	}
	return events[0]
}

// The gate gets the arguments of a call regardless of its title. A call without known parameters has no
// argument.
func TestCalls(t *testing.T) {
	for call, want := range map[string]string{
		`"kind":"execute","rawInput":{"command":"make"}`:            `bash {"command":"make"}`,
		`"kind":"execute","rawInput":{"command":["sh","-c","a b"]}`: `bash {"command":"sh -c 'a b'"}`,
		`"kind":"execute","rawInput":{"command":["sh",7]}`:          `bash {}`,
		`"kind":"execute","rawInput":{"cmd":"make"}`:                `bash {}`,
		`"kind":"execute"`: `bash {}`,
		`"kind":"execute","rawInput":{"command":"make","directory":"/b"}`:                    `bash {"command":"make","dir":"/b"}`,
		`"kind":"execute","rawInput":{"cwd":"/b"}`:                                           `bash {}`,
		`"kind":"read","rawInput":{"file_path":"/a","command":"rm x","cwd":"/b"}`:            `read {"path":"/a"}, bash {"command":"rm x","dir":"/b"}`,
		`"kind":"search","rawInput":{"pattern":"x","path":"/a","command":["rm","x"]}`:        `grep {"path":"/a","pattern":"x"}, bash {"command":"rm x"}`,
		`"kind":"edit","rawInput":{"path":"/a","command":"str_replace"}`:                     `write {"path":"/a"}`,
		`"kind":"edit","rawInput":{"path":"/a","command":"true"}`:                            `write {"path":"/a"}, bash {"command":"true"}`,
		`"kind":"fetch","rawInput":{"url":"https://a","command":7}`:                          `fetch {"url":"https://a"}, bash {}`,
		`"kind":"search","rawInput":{"pattern":"x","path":"/a"},"locations":[{"path":"/b"}]`: `grep {"path":"/a","pattern":"x"}, grep {"path":"/b","pattern":"x"}`,
		`"kind":"search","rawInput":{"query":"x","directory":"/a"}`:                          `grep {"path":"/a","pattern":"x"}`,
		`"kind":"read","locations":[{"path":"/a"}]`:                                          `read {"path":"/a"}`,
		`"kind":"read","rawInput":{"file_path":"/a"}`:                                        `read {"path":"/a"}`,
		`"kind":"edit","rawInput":{"path":"/a"},"locations":[{"path":"/b"}]`:                 `write {"path":"/a"}, write {"path":"/b"}`,
		`"kind":"move","rawInput":{"source":"/a","destination":"/b"}`:                        `write {"path":"/a"}, write {"path":"/b"}`,
		`"kind":"delete","title":"Delete /a"`:                                                `write {}`,
		`"kind":"edit","content":[{"type":"diff","path":"/a","newText":"x"}]`:                `write {"content":"x","path":"/a"}`,
		`"kind":"search","rawInput":{"pattern":"x","path":"/a"}`:                             `grep {"path":"/a","pattern":"x"}`,
		`"kind":"fetch","rawInput":{"url":"https://a"}`:                                      `fetch {"url":"https://a"}`,
		`"kind":"fetch","rawInput":{"query":"x"}`:                                            `fetch {}`,
		`"kind":"think"`:                                                           `think {}`,
		`"kind":"switch_mode"`:                                                     `switch_mode {}`,
		`"kind":"other","rawInput":{"x":1}`:                                        `other {}`,
		`"title":"ls","rawInput":{"command":"rm -r /"}`:                            `bash {"command":"rm -r /"}`,
		`"rawInput":{"file_path":"/a"}`:                                            `write {"path":"/a"}`,
		`"kind":"new","rawInput":{"command":"make"}`:                               `new {}`,
		`"title":"mcp__coven__look","kind":"other","rawInput":{"path":"/a"}`:       `mcp__coven__look {"path":"/a"}`,
		`"title":"look (coven MCP Server)"`:                                        `mcp__coven__look {}`,
		`"title":"look (coven MCP Server): {\"x\":1}","rawInput":{"x":1}`:          `mcp__coven__look {"x":1}`,
		`"title":"the look (coven MCP Server)"`:                                    `other {}`,
		`"title":"mcp__coven__look","rawInput":{"command":"make"}`:                 `bash {"command":"make"}`,
		`"title":"mcp__coven__look","kind":"other","rawInput":{"url":"https://a"}`: `fetch {"url":"https://a"}`,
		`"title":"mcp__coven__look","kind":"edit","rawInput":{"path":"/a"}`:        `write {"path":"/a"}`,
		`"title":"mcp__other__look","kind":"other","rawInput":{"x":1}`:             `other {}`,
		`"title":"Reads /a"`:                                                       `other {}`,
		`"kind":"edit","rawInput":"text"`:                                          `write {}`,
		`"kind":"edit","locations":[{"path":"/a"},{"path":"/a"},{"path":""}]`:      `write {"path":"/a"}`,
		`"kind":"execute","rawInput":{"command":"make"},"content":[]`:              `bash {"command":"make"}`,
		`"kind":"edit","content":[{"type":"diff","path":"","newText":"x"}]`:        `write {}`,
	} {
		asked := parse(t, `{"jsonrpc":"2.0","id":1,"method":"session/request_permission","params":{"sessionId":"s","options":[],"toolCall":{"toolCallId":"c",`+call+`}}}`).(provider.Asked)
		var got []string
		ids := map[string]bool{}
		for _, c := range asked.Calls {
			got = append(got, fmt.Sprintf("%s %s", c.Name, c.Input))
			ids[c.ID] = true
		}
		if text := strings.Join(got, ", "); text != want || len(ids) != len(got) || !ids["c"] {
			t.Errorf("%s: %s with the IDs %v, want %s", call, text, ids, want)
		}
	}
}

// An overlong call ID is shortened, and the call and its result get the same short ID.
func TestLongID(t *testing.T) {
	ids := map[string]bool{}
	for _, end := range []string{"1", "2"} {
		update := `{"method":"session/update","params":{"sessionId":"s","update":{"toolCallId":"` + strings.Repeat("x", 9*maxID) + end
		call := parse(t, update+`","sessionUpdate":"tool_call","title":"x","kind":"think"}}}`).(provider.ToolCall)
		result := parse(t, update+`","sessionUpdate":"tool_call_update","status":"completed"}}}`).(provider.ToolResult)
		if call.ID != result.ID || len(call.ID) > maxID {
			t.Errorf("%q, %q", call.ID, result.ID)
		}
		ids[call.ID] = true
	}
	if len(ids) != 2 {
		t.Errorf("%v", ids)
	}
}

// A call is reported once its parameters are known. OpenCode first reports it without them, and later
// twice.
func TestBegun(t *testing.T) {
	for update, want := range map[string]string{
		`"sessionUpdate":"tool_call","title":"bash","kind":"execute","status":"pending","locations":[{"path":"/w"}],"rawInput":{"cwd":"/w"}`:               "",
		`"sessionUpdate":"tool_call_update","status":"in_progress","kind":"execute","title":"x","locations":[{"path":"/w"}],"rawInput":{"command":"make"}`: `bash {"command":"make"}`,
		`"sessionUpdate":"tool_call_update","status":"in_progress","kind":"think","title":"x","rawInput":{"a":1}`:                                          "",
		`"sessionUpdate":"tool_call","title":"x","kind":"think","rawInput":{"a":1}`:                                                                        `think {}`,
		`"sessionUpdate":"tool_call_update","status":"in_progress"`:                                                                                        "",
		`"sessionUpdate":"tool_call_update","kind":"edit","rawInput":{"filepath":"/a"},"content":[{"type":"diff","path":"/a","oldText":"","newText":"x"}]`: `write {"content":"x","path":"/a"}`,
	} {
		events, err := one.Parse(t.Context(), []byte(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"toolCallId":"c",`+update+`}}}`))
		got := ""
		for _, e := range events {
			call := e.(provider.ToolCall)
			got += fmt.Sprintf("%s %s", call.Name, call.Input)
		}
		if err != nil || got != want {
			t.Errorf("%s: %q, want %q (%v)", update, got, want, err)
		}
	}
}

// A conversation starts in several steps.
func TestSteps(t *testing.T) {
	fresh := provider.Request{Prompt: "/clear", System: "be good", Dir: "/w"}
	again := provider.Request{Prompt: "more", Dir: "/w", Conversation: "old", Resume: true}
	chosen := provider.Request{Prompt: "x", Dir: "/w", Model: "large"}
	served := provider.Request{Dir: "/w", Tools: []string{provider.ToolRead, provider.ToolWrite}, Gate: provider.Server{Name: "coven", Argv: []string{"/bin/coven", "gate"}, Env: []string{"A=b=c"}}}
	reads := served
	reads.Tools = served.Tools[:1]
	loads := served
	loads.Resume, loads.Conversation = true, "old"
	const server = `"mcpServers":[{"args":["gate"],"command":"/bin/coven","env":[{"name":"A","value":"b=c"}],"name":"coven"}]`
	const models = `"configOptions":[{"type":"select","id":"m","name":"Model","category":"model","currentValue":"v1","options":[{"value":"v1","name":"small"},{"value":"v2","name":"large"}]}]`
	const modes = `"modes":{"currentModeId":"auto","availableModes":[{"id":"auto","name":"A"},{"id":"default","name":"D"}]}`
	for _, test := range []struct {
		line string
		req  provider.Request
		want string // the answer or the error
	}{
		{`{"id":1,"result":{"protocolVersion":1}}`, fresh, `"method":"session/new","params":{"cwd":"/w","mcpServers":[]}`},
		{`{"id":1,"result":{"protocolVersion":1,"agentCapabilities":{"loadSession":true}}}`, again, `"method":"session/load","params":{"cwd":"/w","mcpServers":[],"sessionId":"old"}`},
		{`{"id":1,"result":{"protocolVersion":1}}`, again, "the agent cannot load sessions"},
		{`{"id":1,"result":{"protocolVersion":1}}`, served, `"cwd":"/w",` + server},
		{`{"id":1,"result":{"protocolVersion":1}}`, reads, `"mcpServers":[]`},
		{`{"id":1,"result":{"protocolVersion":1,"agentCapabilities":{"loadSession":true}}}`, loads, `"cwd":"/w",` + server + `,"sessionId":"old"`},
		{`{"id":1,"result":{"protocolVersion":2}}`, fresh, "the agent speaks version 2"},
		{`{"id":1,"result":[]}`, fresh, "the agent speaks version 0"},
		{`{"id":2,"result":{"sessionId":"s"}}`, fresh, `"text":"be good\n\n# Your task\n\n/clear"`},
		{`{"id":3,"result":{}}`, again, `"sessionId":"old"`},
		{`{"id":2,"result":{"sessionId":"s",` + models + `}}`, chosen, `"id":"model s","jsonrpc":"2.0","method":"session/set_config_option","params":{"configId":"m","sessionId":"s","value":"v2"}`},
		{`{"id":2,"result":{"sessionId":"s"}}`, chosen, "the agent does not let coven choose a model"},
		{`{"id":2,"result":{"sessionId":"s",` + models + `}}`, provider.Request{Model: "huge"}, `the agent has no model "huge" (it has: small, large)`},
		{`{"id":"model s","result":{}}`, chosen, `"sessionId":"s"`},
		{`{"id":2,"result":{"sessionId":"s",` + modes + `}}`, fresh, `"id":"mode s","jsonrpc":"2.0","method":"session/set_mode","params":{"modeId":"default","sessionId":"s"}`},
		{`{"id":3,"result":{` + modes + `}}`, again, `"id":"mode old","jsonrpc":"2.0","method":"session/set_mode","params":{"modeId":"default","sessionId":"old"}`},
		{`{"id":2,"result":{"sessionId":"s",` + strings.Replace(modes, `"currentModeId":"auto"`, `"currentModeId":"default"`, 1) + `}}`, fresh, `"method":"session/prompt"`},
		{`{"id":2,"result":{"sessionId":"s",` + strings.Replace(modes, `"id":"default"`, `"id":"ask"`, 1) + `}}`, fresh, `"method":"session/prompt"`},
		{`{"id":2,"result":{"sessionId":"s",` + models + `,` + modes + `}}`, chosen, `"id":"model, mode s","jsonrpc":"2.0","method":"session/set_config_option"`},
		{`{"id":"model, mode s","result":{}}`, chosen, `"method":"session/set_mode","params":{"modeId":"default","sessionId":"s"}`},
		{`{"id":"mode s","result":{}}`, chosen, `"method":"session/prompt"`},
		{`{"id":2,"result":{"sessionId":"` + strings.Repeat("s", maxID) + `"}}`, fresh, "the agent's session ID has 200 bytes"},
	} {
		events, err := one.Parse(t.Context(), []byte(test.line))
		if err != nil || len(events) == 0 {
			t.Fatalf("%s: %v, %v", test.line, events, err)
		}
		reply, err := one.Answer(t.Context(), provider.Answer{Request: test.req, Asked: events[len(events)-1].(provider.Asked), Allowed: true})
		if got := fmt.Sprintf("%s%v", reply.Input, err); !strings.Contains(got, test.want) {
			t.Errorf("%s: %s, want %s", test.line, got, test.want)
		}
	}
}

// A turn that ends at a call that failed goes on with the reason, and its usage counts. Anything that the agent does after the
// call makes the end a result.
func TestRefusedCall(t *testing.T) {
	const (
		ask    = `{"id":7,"method":"session/request_permission","params":{"sessionId":"s","options":[{"optionId":"n","name":"N","kind":"reject_once"}],"toolCall":{"toolCallId":"c","kind":"edit","rawInput":{"path":"/a"}}}}`
		failed = `{"method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call_update","toolCallId":"c","status":"failed"}}}`
		said   = `{"method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"I cannot."}}}}`
		called = `{"method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call","toolCallId":"d","title":"T","kind":"other"}}}`
		end    = `{"id":"prompt s","result":{"stopReason":"end_turn","usage":{"inputTokens":5,"outputTokens":6,"totalTokens":11}}}`
		other  = `{"id":"prompt other","result":{"stopReason":"end_turn"}}`
	)
	for name, test := range map[string]struct {
		lines []string
		again bool
	}{
		"failed":        {[]string{failed, end}, true},
		"then text":     {[]string{failed, said, end}, false},
		"then a call":   {[]string{failed, called, end}, false},
		"other session": {[]string{failed, other}, false},
		"nothing":       {[]string{end}, false},
		"cancelled":     {[]string{failed, strings.Replace(end, "end_turn", "cancelled", 1)}, false},
	} {
		p := New(one.Getenv)
		asked := parse(t, ask).(provider.Asked)
		if _, err := p.Answer(t.Context(), provider.Answer{Asked: asked, Reason: "no"}); err != nil {
			t.Fatal(err)
		}
		events, err := p.Parse(t.Context(), []byte(strings.Join(test.lines, "\n")+"\n"))
		if err != nil {
			t.Fatal(err)
		}
		last := events[len(events)-1]
		next, again := last.(provider.Asked)
		if again != test.again {
			t.Errorf("%s: %+v", name, last)
		}
		if !again {
			continue
		}
		reply, err := p.Answer(t.Context(), provider.Answer{Request: provider.Request{Prompt: "do it"}, Asked: next})
		if text := string(reply.Input); err != nil || !strings.Contains(text, `"method":"session/prompt"`) || !strings.Contains(text, "was refused: no.") || strings.Contains(text, "do it") {
			t.Errorf("%s: %s, %v", name, text, err)
		}
		events, err = p.Parse(t.Context(), []byte(said+"\n"+end+"\n"))
		if want := (provider.Result{OK: true, Usage: provider.Usage{InputTokens: 10, OutputTokens: 12}}); err != nil || events[1] != provider.Event(want) {
			t.Errorf("%s: %+v, %v", name, events, err)
		}
	}
}

// TestRespond tests the answers to requests of an agent.
func TestRespond(t *testing.T) {
	const ask = `"method":"session/request_permission","params":{"sessionId":"s","toolCall":{"toolCallId":"c"},"options":`
	all := `[{"optionId":"a","name":"","kind":"allow_always"},{"optionId":"o","name":"","kind":"allow_once"},{"optionId":"n","name":"","kind":"reject_always"},{"optionId":"r","name":"","kind":"reject_once"}]`
	no, yes := provider.Answer{Reason: "not now"}, provider.Answer{Allowed: true}
	ran := provider.Answer{Allowed: true, Text: "out", Terminal: provider.Terminal{ID: "t", Exited: true, Code: 3}}
	for _, test := range []struct {
		request string
		answer  provider.Answer
		want    string
	}{
		{ask + all + `}`, yes, `"result":{"outcome":{"optionId":"o","outcome":"selected"}}`},
		{ask + all + `}`, no, `"result":{"outcome":{"optionId":"r","outcome":"selected"}}`},
		{ask + all + `}`, provider.Answer{Cancelled: true}, `"result":{"outcome":{"outcome":"cancelled"}}`},
		{ask + `[{"optionId":"a","name":"","kind":"allow_always"}]}`, yes, `"result":{"outcome":{"outcome":"cancelled"}}`},
		{ask + `[{"optionId":"o","name":"","kind":"allow_once"}]}`, no, `"result":{"outcome":{"outcome":"cancelled"}}`},
		{ask + `[{"optionId":"o","name":"","kind":"allow_once"},{"optionId":"o","name":"","kind":"reject_once"}]}`, no, `"result":{"outcome":{"outcome":"cancelled"}}`},
		{ask + `[{"optionId":"o","name":"","kind":"allow_always"},{"optionId":"o","name":"","kind":"allow_once"}]}`, yes, `"result":{"outcome":{"outcome":"cancelled"}}`},
		{ask + `7}`, yes, `"error":{"code":-32602`},
		{
			`"method":"session/request_permission","params":{"toolCall":{"toolCallId":"c","rawInput":{"command":"ls","Command":"rm"}},"options":` + all + `}`, yes,
			`the parameters of session/request_permission cannot be read: \"command\" and \"Command\" differ only by case"`,
		},
		{`"method":"fs/read_text_file","params":{"path":"/a"}`, provider.Answer{Allowed: true, Text: "x"}, `"result":{"content":"x"}`},
		{`"method":"fs/read_text_file","params":{"path":"/a"}`, provider.Answer{NotFound: true, Reason: "gone"}, `"error":{"code":-32002,"message":"gone"}`},
		{`"method":"fs/read_text_file","params":{"path":7}`, yes, `"error":{"code":-32602`},
		{`"method":"fs/write_text_file","params":{"path":"/a","content":""}`, yes, `"result":{}`},
		{`"method":"fs/write_text_file","params":{"path":"/a","content":""}`, no, `"error":{"code":-32603,"message":"not now"}`},
		{`"method":"terminal/create","params":{"command":"a b"}`, provider.Answer{Allowed: true, Terminal: provider.Terminal{ID: "t"}}, `"result":{"terminalId":"t"}`},
		{`"method":"terminal/output","params":{"terminalId":"t"}`, ran, `"result":{"exitStatus":{"exitCode":3},"output":"out","truncated":false}`},
		{`"method":"terminal/wait_for_exit","params":{"terminalId":"t"}`, ran, `"result":{"exitCode":3}`},
		{`"method":"terminal/release","params":{"terminalId":"t"}`, yes, `"result":{}`},
		{`"method":"_other","params":{}`, yes, `"error":{"code":-32601`},
	} {
		test.answer.Asked = parse(t, `{"jsonrpc":"2.0","id":"x1",`+test.request+`}`).(provider.Asked)
		reply, err := one.Answer(t.Context(), test.answer)
		got := string(reply.Input)
		if err != nil || !strings.Contains(got, test.want) || !strings.Contains(got, `"id":"x1"`) {
			t.Errorf("%s:\ngot  %s (%v)\nwant %s", test.request, got, err, test.want)
		}
	}
}

// A terminal request becomes one shell command with its variables.
func TestTerminal(t *testing.T) {
	for params, want := range map[string]provider.RunCommand{
		`{"command":"make test","cwd":"/w","outputByteLimit":9}`:                        {Command: "make test", Dir: "/w", MaxOutput: 9},
		`{"command":"my prog","args":["a b","$x"]}`:                                     {Command: `'my prog' 'a b' '$x'`},
		`{"command":"make","env":[{"name":"A","value":"1 2"},{"name":"B","value":""}]}`: {Command: `export 'A=1 2' && export 'B=' && make`},
	} {
		asked := parse(t, `{"jsonrpc":"2.0","id":1,"method":"terminal/create","params":`+params+`}`).(provider.Asked)
		if asked.Action != want {
			t.Errorf("%s: %+v, want %+v", params, asked.Action, want)
		}
	}
}

// TestResults tests all ends of a prompt.
func TestResults(t *testing.T) {
	for text, want := range map[string]provider.Result{
		`"result":{"stopReason":"end_turn"}`: {OK: true},
		`"result":{"stopReason":"end_turn","usage":{"inputTokens":5,"outputTokens":6,"cachedReadTokens":7,"totalTokens":18}}`: {
			OK: true, Usage: provider.Usage{InputTokens: 5, OutputTokens: 6, CacheReadTokens: 7},
		},
		`"result":{"stopReason":"refusal"}`:   {Error: "the agent refused"},
		`"result":{"stopReason":"cancelled"}`: {Error: "the agent cancelled its turn"},
		`"result":{}`:                         {Error: "the agent stopped without a reason"},
		`"error":{"code":-32603,"message":"Internal error","data":{"details":"401 nope"}}`: {Error: "Internal error: 401 nope", Status: 401},
		`"error":{"code":-32000,"message":"Authentication required"}`:                      {Error: "Authentication required", Status: 401},
		`"error":{"code":429,"message":"Slow down"}`:                                       {Error: "Slow down", Status: 429, Limit: true},
		`"error":{"code":-32603,"message":"x","data":"see 429 pages"}`:                     {Error: "x: see 429 pages"},
	} {
		if got := parse(t, `{"jsonrpc":"2.0","id":"prompt s",`+text+`}`); got != want {
			t.Errorf("%s: %+v, want %+v", text, got, want)
		}
	}
	for _, text := range []string{
		`{"id":"prompt s"}`, `{"id":99,"result":{}}`, `{"id":"4","result":{}}`, `{"id":null,"result":{}}`, `{"id":null,"method":"x"}`, `{"result":{}}`, `{"method":"x"}`,
		`{"id":"` + strings.Repeat("x", maxID) + `","method":"x"}`, `{"method":"session/update","params":{"update":{"sessionUpdate":"new"}}}`,
	} {
		if events, err := one.Parse(t.Context(), []byte(text+"\n")); err != nil || events != nil {
			t.Errorf("%s: %+v, %v", text, events, err)
		}
	}
}

// Every line is parsed the same way alone and with others, and every request gets one answer: a line of
// JSON with its ID.
func FuzzParse(f *testing.F) {
	text, err := os.ReadFile("testdata/qwen.jsonl")
	if err != nil {
		f.Fatal(err)
	}
	for line := range bytes.Lines(text) {
		f.Add(line)
	}
	f.Add([]byte(`{"id":{"a":[1,"` + "\xff" + `"]},"method":"terminal/create","params":{"command":"a","args":["\u0000"]}}`))
	f.Add([]byte(`{"id":1,"result":{}}` + "\n" + `{"id":1,"error":{}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		whole, err := one.Parse(t.Context(), text)
		if err != nil {
			t.Fatal(err)
		}
		var each []provider.Event
		for line := range bytes.Lines(text) {
			events, _ := one.Parse(t.Context(), line)
			each = append(each, events...)
		}
		if !reflect.DeepEqual(whole, each) {
			t.Fatalf("together %+v, alone %+v", whole, each)
		}
		for _, e := range whole {
			asked, ok := e.(provider.Asked)
			if !ok || strings.HasPrefix(asked.ID, "after ") {
				continue
			}
			for _, allowed := range []bool{true, false} {
				reply, err := one.Answer(t.Context(), provider.Answer{Asked: asked, Allowed: allowed})
				var m struct {
					ID            json.RawMessage
					Result, Error any
				}
				if err != nil || json.Unmarshal(reply.Input, &m) != nil || bytes.Count(reply.Input, []byte("\n")) != 1 || (m.Result == nil) == (m.Error == nil) {
					t.Fatalf("%s: %s (%v)", asked.Data, reply.Input, err)
				}
			}
		}
	})
}
