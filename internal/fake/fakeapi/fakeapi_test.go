package fakeapi_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coven-run/coven/internal/fake/fakeapi"
)

const patience = 60 * time.Second

func start(t *testing.T, script string) *fakeapi.Server {
	t.Helper()
	scenario, err := fakeapi.Parse([]byte(script))
	check(t, err)
	server, err := fakeapi.New(scenario)
	check(t, err)
	t.Cleanup(func() { check(t, server.Close()) })
	return server
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// body returns a request with the given messages: "user: text" or "assistant: text".
func body(stream bool, messages ...string) string {
	var wire []map[string]any
	for _, message := range messages {
		role, text, _ := strings.Cut(message, ": ")
		wire = append(wire, map[string]any{"role": role, "content": []any{map[string]any{"type": "text", "text": text}}})
	}
	data, _ := json.Marshal(map[string]any{
		"model": "m-1", "stream": stream, "messages": wire, "tools": []any{map[string]any{"name": "Bash"}},
		"system": []any{map[string]any{"type": "text", "text": " - Primary working directory: /project/tree\n - more"}},
	}) // cannot fail for literals
	return string(data)
}

func post(t *testing.T, server *fakeapi.Server, body string) *http.Response {
	t.Helper()
	response, err := http.Post(server.URL+"/v1/messages?beta=true", "application/json", strings.NewReader(body))
	check(t, err)
	t.Cleanup(func() { _ = response.Body.Close() }) // only read
	return response
}

// answer makes a request without streaming and returns the texts and calls of the answer.
func answer(t *testing.T, server *fakeapi.Server, messages ...string) string {
	t.Helper()
	response := post(t, server, body(false, messages...))
	var message struct {
		Content []struct {
			Type, Text, Name string
			Input            json.RawMessage
		}
	}
	check(t, json.NewDecoder(response.Body).Decode(&message))
	var parts []string
	for _, block := range message.Content {
		parts = append(parts, strings.TrimSpace(block.Text+" "+block.Name+string(block.Input)))
	}
	return strings.Join(parts, " | ")
}

func TestTurnDependsOnTheRequestAlone(t *testing.T) {
	server := start(t, `
conversations:
- {match: red, turns: [{text: red one}, {text: red two}]}
- {turns: [{text: any one}]}
`)
	tests := []struct {
		want     string
		messages []string
	}{
		{"red two", []string{"user: paint it red", "assistant: red one", "user: go on"}},
		{"red one", []string{"user: paint it red"}},
		{"red one", []string{"user: paint it red"}},
		{"done", []string{"user: red", "assistant: a", "user: b", "assistant: c", "user: d"}},
		{"any one", []string{"user: paint it blue"}},
		{"any one", []string{"user: blue", "assistant: API Error: 500", "user: again, red"}},
		{"red two", []string{"user: red", "assistant: a", "user: Continue", "assistant: No response requested.", "user: go"}},
		{"any one", []string{"user: <system-reminder>red</system-reminder>"}},
	}
	for _, test := range tests {
		if got := answer(t, server, test.messages...); got != test.want {
			t.Errorf("%q: got %q, want %q", test.messages, got, test.want)
		}
	}
	if got := answer(t, start(t, ""), "user: x"); got != "done" {
		t.Errorf("empty scenario: %q", got)
	}
}

func TestTemplates(t *testing.T) {
	server := start(t, `
conversations:
- turns:
  - {text: "in ${CWD}", tools: [{name: Bash, input: {command: "echo ${HOME} ${CWD}/x", list: ["${CWD}", 3]}}]}
`)
	want := `in /project/tree | Bash{"command":"echo ${HOME} /project/tree/x","list":["/project/tree",3]}`
	if got := answer(t, server, "user: x"); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestLastToolResult(t *testing.T) {
	server := start(t, `conversations: [{turns: [{text: "it said ${LAST_TOOL_RESULT}"}]}]`)
	response := post(t, server, `{"model":"m","messages":[{"role":"user","content":[
		{"type":"tool_result","tool_use_id":"a","content":"first"},
		{"type":"tool_result","tool_use_id":"b","is_error":true,"content":[{"type":"text","text":"second"}]}]}]}`)
	data, err := io.ReadAll(response.Body)
	check(t, err)
	if !strings.Contains(string(data), "it said second") {
		t.Errorf("%s", data)
	}
	block := server.Requests()[0].Messages[0].Content[1]
	if block.Result != "second" || !block.IsError || block.ToolUseID != "b" {
		t.Errorf("%+v", block)
	}
}

func TestStream(t *testing.T) {
	server := start(t, `
conversations:
- turns: [{text: hi, tools: [{name: Bash, input: {command: ls}}], usage: {input: 7, output: 3}}]
`)
	response := post(t, server, body(true, "user: x"))
	if got := response.Header.Get("Content-Type"); got != "text/event-stream" {
		t.Errorf("content type %s", got)
	}
	var kinds []string
	var input strings.Builder
	for _, event := range events(t, response.Body) {
		kinds = append(kinds, event.Type)
		input.WriteString(event.Delta.JSON)
		switch event.Type {
		case "message_start":
			if event.Message.Model != "m-1" || event.Message.Usage.Input != 7 {
				t.Errorf("%+v", event.Message)
			}
		case "message_delta":
			if event.Delta.StopReason != "tool_use" || event.Usage.Output != 3 {
				t.Errorf("%+v", event)
			}
		}
	}
	want := "message_start content_block_start content_block_delta content_block_stop content_block_start " +
		"content_block_delta content_block_delta content_block_stop message_delta message_stop"
	if got := strings.Join(kinds, " "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if input.String() != `{"command":"ls"}` {
		t.Errorf("input %s", input.String())
	}
}

type event struct {
	Type  string
	Index int
	Delta struct {
		Text, StopReason string
		JSON             string `json:"partial_json"`
		Reason           string `json:"stop_reason"`
	}
	Message struct {
		Model string
		Usage struct {
			Input int `json:"input_tokens"`
		}
	}
	Usage struct {
		Output int `json:"output_tokens"`
	}
}

func events(t *testing.T, body io.Reader) []event {
	t.Helper()
	var all []event
	scanner := bufio.NewScanner(body)
	for scanner.Scan() {
		if data, found := strings.CutPrefix(scanner.Text(), "data: "); found {
			var one event
			check(t, json.Unmarshal([]byte(data), &one))
			one.Delta.StopReason = one.Delta.Reason
			all = append(all, one)
		}
	}
	return all
}

func TestFailuresComeFirst(t *testing.T) {
	server := start(t, `
conversations:
- turns: [{text: ok, fail: [{status: 529, times: 2}, {status: 429, retry_after: 3s}]}]
`)
	var got []string
	for range 4 {
		response := post(t, server, body(false, "user: x"))
		got = append(got, fmt.Sprintf("%d%s", response.StatusCode, response.Header.Get("Retry-After")))
	}
	if want := "529 529 4293 200"; strings.Join(got, " ") != want {
		t.Errorf("got %v, want %s", got, want)
	}
	for i, request := range server.Requests() {
		if request.Kind != fakeapi.KindTurn || request.Turn != 0 || !strings.HasPrefix(got[i], fmt.Sprint(request.Status)) {
			t.Errorf("request %d: %+v", i, request)
		}
	}
}

func TestHoldsBetweenChunks(t *testing.T) {
	server := start(t, `
conversations:
- turns: [{hold: before, chunks: [{text: one}, {text: two, hold: middle}, {text: " more", join: true}]}]
`)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	texts := make(chan string, 10)
	go func() {
		defer close(texts)
		response, err := http.Post(server.URL+"/v1/messages", "application/json", strings.NewReader(body(true, "user: x")))
		if err != nil {
			return
		}
		defer func() { _ = response.Body.Close() }() // only read
		scanner := bufio.NewScanner(response.Body)
		for scanner.Scan() {
			var one event
			if data, found := strings.CutPrefix(scanner.Text(), "data: "); found && json.Unmarshal([]byte(data), &one) == nil {
				switch one.Type {
				case "content_block_delta":
					texts <- one.Delta.Text
				case "content_block_stop":
					texts <- "."
				}
			}
		}
	}()
	check(t, server.WaitHeld(ctx, "before"))
	if len(texts) != 0 {
		t.Error("text came before the hold")
	}
	server.Release("before")
	if got := <-texts + <-texts; got != "one." {
		t.Errorf("first block %q", got)
	}
	check(t, server.WaitHeld(ctx, "middle"))
	server.Release("middle")
	var rest string
	for text := range texts {
		rest += text
	}
	if rest != "two more." {
		t.Errorf("second block %q", rest)
	}
}

func TestWaitHeldGivesUp(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := start(t, "").WaitHeld(ctx, "never"); err == nil || !strings.Contains(err.Error(), "never") {
		t.Errorf("got %v", err)
	}
}

func TestControlEndpoints(t *testing.T) {
	server := start(t, `conversations: [{turns: [{hold: h, text: ok}]}]`)
	status := func(method, path string) int {
		request, err := http.NewRequest(method, server.URL+path, nil)
		check(t, err)
		response, err := http.DefaultClient.Do(request)
		check(t, err)
		check(t, response.Body.Close())
		return response.StatusCode
	}
	if got := status("GET", "/_control/held?name=h&timeout=1ms"); got != http.StatusGatewayTimeout {
		t.Errorf("nobody is held: %d", got)
	}
	if got := status("GET", "/_control/held?name=h&timeout=x"); got != http.StatusBadRequest {
		t.Errorf("bad timeout: %d", got)
	}
	answered := make(chan string)
	go func() { answered <- answer(t, server, "user: x") }()
	if got := status("GET", "/_control/held?name=h"); got != http.StatusNoContent {
		t.Errorf("held: %d", got)
	}
	if got := status("POST", "/_control/release?name=h"); got != http.StatusNoContent {
		t.Errorf("release: %d", got)
	}
	if got := <-answered; got != "ok" {
		t.Errorf("answer %q", got)
	}
	response, err := http.Get(server.URL + "/_control/requests")
	check(t, err)
	var requests []fakeapi.Request
	check(t, json.NewDecoder(response.Body).Decode(&requests))
	check(t, response.Body.Close())
	if len(requests) != 1 || requests[0].System == "" || requests[0].Tools[0] != "Bash" || requests[0].Messages[0].Text() != "x" {
		t.Errorf("%+v", requests)
	}
}

func TestCut(t *testing.T) {
	server := start(t, `conversations: [{turns: [{text: whole, tools: [{name: Bash, input: {command: ls}}], cut: true}]}]`)
	response := post(t, server, body(true, "user: x"))
	data, err := io.ReadAll(response.Body)
	if err == nil || !strings.Contains(string(data), "whole") || strings.Contains(string(data), "message_stop") {
		t.Errorf("error %v after %s", err, data)
	}
	if _, err := http.Post(server.URL+"/v1/messages", "application/json", strings.NewReader(body(false, "user: x"))); err == nil {
		t.Error("the request without a stream was answered")
	}
}

func TestSideRequestsConsumeNothing(t *testing.T) {
	server := start(t, `conversations: [{turns: [{text: turn, fail: [{status: 500}]}]}]`)
	response := post(t, server, `{"model":"m","system":"Return JSON with a single \"title\" field.","messages":[{"role":"user","content":"x"}]}`)
	if response.StatusCode != http.StatusOK || server.Requests()[0].Kind != fakeapi.KindSide {
		t.Errorf("status %d, %+v", response.StatusCode, server.Requests()[0])
	}
	if response := post(t, server, body(false, "user: x")); response.StatusCode != http.StatusInternalServerError {
		t.Errorf("the failure is used up: %d", response.StatusCode)
	}
}
