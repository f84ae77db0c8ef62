package fakeapi_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/coven-run/coven/internal/fake/fakeapi"
)

func TestOtherPaths(t *testing.T) {
	server := start(t, "")
	tests := []struct {
		method, path string
		status       int
		kind         fakeapi.Kind
	}{
		{"HEAD", "/", 200, fakeapi.KindOther},
		{"POST", "/v1/messages/count_tokens", 200, fakeapi.KindCount},
		{"GET", "/v1/models", 200, fakeapi.KindOther},
		{"GET", "/v1/files", 404, fakeapi.KindOther},
	}
	for i, test := range tests {
		request, err := http.NewRequest(test.method, server.URL+test.path, nil)
		check(t, err)
		response, err := http.DefaultClient.Do(request)
		check(t, err)
		data, err := io.ReadAll(response.Body)
		check(t, err)
		check(t, response.Body.Close())
		recorded := server.Requests()[i]
		if response.StatusCode != test.status || recorded.Status != test.status || recorded.Kind != test.kind {
			t.Errorf("%s %s: %d, %+v", test.method, test.path, response.StatusCode, recorded)
		}
		if test.status == 404 && !strings.Contains(string(data), "not_found_error") {
			t.Errorf("body %s", data)
		}
	}
	if response := post(t, server, "{"); response.StatusCode != http.StatusBadRequest {
		t.Errorf("broken JSON: %d", response.StatusCode)
	}
}

func TestCloseDropsHeldAnswers(t *testing.T) {
	scenario, err := fakeapi.Parse([]byte(`conversations: [{turns: [{hold: h}]}]`))
	check(t, err)
	server, err := fakeapi.New(scenario)
	check(t, err)
	failed := make(chan error)
	go func() {
		_, err := http.Post(server.URL+"/v1/messages", "application/json", strings.NewReader(body(true, "user: x")))
		failed <- err
	}()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	check(t, server.WaitHeld(ctx, "h"))
	check(t, server.Close())
	if err := <-failed; err == nil {
		t.Error("the held answer came")
	}
}

func TestParseIsStrict(t *testing.T) {
	for script, want := range map[string]string{
		"conversations: [{turns: [{txt: x}]}]":                                   "txt",
		"conversations: [{turns: [{tools: [{input: {}}]}]}]":                     "without a name",
		"conversations: [{turns: [{fail: [{status: 200}]}]}]":                    "200",
		"conversations: [{turns: [{fail: [{status: 429, retry_after: 10ms}]}]}]": "whole seconds",
		"conversations: [{turns: [{delay: soon}]}]":                              "soon",
	} {
		if _, err := fakeapi.Parse([]byte(script)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", script, err)
		}
	}
	if _, err := fakeapi.Load("testdata/absent.yaml"); err == nil {
		t.Error("an absent file was loaded")
	}
}
