package telemetry

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/coven-run/coven/internal/session/trace"
)

const sessionID = "0a1b2c3d-0000-4000-8000-000000000001"

func sample() Session {
	at := time.Date(2026, 1, 2, 3, 0, 0, 5, time.UTC)
	return Session{
		ID: "2026-01-02-do", TraceID: sessionID, Task: "do", Status: "failed", Detail: "no\ngood", Started: at, Ended: at.Add(time.Minute), CostUSD: 0.25,
		Entries: []trace.Entry{
			{TraceID: sessionID, AgentName: "build", ParentChain: []string{"user", "build"}, SpawnedAt: at, CompletedAt: at.Add(time.Second), DurationMS: 1000, Status: "completed", Path: "make#1", Model: "sonnet", Tokens: 12},
			{TraceID: "t2", ParentTraceID: sessionID, AgentName: "helper", ParentChain: []string{"user", "build", "helper"}, ID: "helper-x", SpawnedAt: at, CompletedAt: at.Add(-time.Second), Status: "failed", Error: "timeout", Path: "make#1"},
			{TraceID: sessionID, AgentName: "build", ParentChain: []string{"user", "build"}, SpawnedAt: at.Add(time.Second), Status: "interrupted", Path: "fix#1"},
		},
		Resource: Resource{Version: "1.2.3", Project: "app"},
	}
}

// C-150: OpenTelemetry's collector can read the trace: IDs, times, parents, and failures.
func TestRequest(t *testing.T) {
	file := filepath.Join(t.TempDir(), "traces")
	for range 2 {
		if err := Export(t.Context(), To{File: file}, sample()); err != nil {
			t.Fatal(err)
		}
	}
	lines := strings.Split(strings.TrimSuffix(read(t, file), "\n"), "\n")
	if len(lines) != 2 || lines[0] != lines[1] {
		t.Fatalf("the same trace twice: %q", lines)
	}
	data, err := (&ptrace.JSONUnmarshaler{}).UnmarshalTraces([]byte(lines[0]))
	if err != nil {
		t.Fatal(err)
	}
	resource := data.ResourceSpans().At(0).Resource().Attributes().AsRaw()
	if !reflect.DeepEqual(resource, map[string]any{"service.name": "coven", "service.version": "1.2.3", "coven.project": "app"}) {
		t.Errorf("resource %v", resource)
	}
	spans := data.ResourceSpans().At(0).ScopeSpans().At(0).Spans()
	if spans.Len() != 4 {
		t.Fatalf("%d spans", spans.Len())
	}
	session, build, helper, fix := spans.At(0), spans.At(1), spans.At(2), spans.At(3)
	ids := map[pcommon.SpanID]bool{}
	for _, s := range spans.All() {
		if s.TraceID().String() != strings.ReplaceAll(sessionID, "-", "") || s.SpanID().IsEmpty() || ids[s.SpanID()] || s.Kind() != ptrace.SpanKindInternal {
			t.Errorf("span %s: trace %s, span %s, kind %s", s.Name(), s.TraceID(), s.SpanID(), s.Kind())
		}
		ids[s.SpanID()] = true
	}
	for name, c := range map[string]struct {
		span   ptrace.Span
		parent pcommon.SpanID
		status ptrace.StatusCode
		text   string
		took   time.Duration
	}{
		"session 2026-01-02-do": {session, pcommon.NewSpanIDEmpty(), ptrace.StatusCodeError, "no good", time.Minute},
		"invoke_agent build":    {build, session.SpanID(), ptrace.StatusCodeOk, "", time.Second},
		"invoke_agent helper":   {helper, build.SpanID(), ptrace.StatusCodeError, "timeout", 0},
	} {
		s := c.span
		took := s.EndTimestamp().AsTime().Sub(s.StartTimestamp().AsTime())
		if s.Name() != name || s.ParentSpanID() != c.parent || s.Status().Code() != c.status || s.Status().Message() != c.text || took != c.took || !s.StartTimestamp().AsTime().Equal(sample().Started) {
			t.Errorf("%s: %s below %s, %s %q, %s", name, s.Name(), s.ParentSpanID(), s.Status().Code(), s.Status().Message(), took)
		}
	}
	if fix.ParentSpanID() != session.SpanID() || fix.EndTimestamp() != session.EndTimestamp() || fix.Status().Message() != "interrupted" {
		t.Errorf("what did not end ends with the session: %s", fix.EndTimestamp())
	}
	want := map[string]any{
		"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "build", "gen_ai.request.model": "sonnet", "coven.trace_id": sessionID, "coven.step": "make#1",
		"coven.status": "completed", "coven.tokens": int64(12), "coven.duration_ms": int64(1000), "coven.parent_chain": []any{"user", "build"},
	}
	if got := build.Attributes().AsRaw(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// A pipe without a reader, a link, and a receiver that redirects elsewhere are errors, and nothing blocks.
func TestExportFails(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/hosts", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{pipe, filepath.Join(dir, "link"), filepath.Join(dir, "none", "x"), dir} {
		if err := Export(t.Context(), To{File: file}, sample()); err == nil || !strings.HasPrefix(err.Error(), "write the trace") {
			t.Errorf("%s: %v", file, err)
		}
	}
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("the key %q left", r.Header.Get("X-Key"))
	}))
	defer elsewhere.Close()
	server := httptest.NewServer(http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect))
	defer server.Close()
	err := Export(t.Context(), To{Endpoint: server.URL, Headers: map[string]string{"X-Key": "secret"}}, sample())
	if err == nil || !strings.Contains(err.Error(), "307 Temporary Redirect") {
		t.Errorf("a redirect: %v", err)
	}
}

func TestNowhere(t *testing.T) {
	if err := Export(t.Context(), To{}, Session{}); err != nil {
		t.Error(err)
	}
}

func TestHeaders(t *testing.T) {
	got, err := Headers("a=b, c=d%20e%2C,,x = y=z ")
	if err != nil || !reflect.DeepEqual(got, map[string]string{"a": "b", "c": "d e,", "x": "y=z"}) {
		t.Errorf("%v, %v", got, err)
	}
	for _, text := range []string{"a", "=b", "a=%zz", "a=b,c"} {
		if got, err := Headers(text); err == nil {
			t.Errorf("%q: %v", text, got)
		}
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
