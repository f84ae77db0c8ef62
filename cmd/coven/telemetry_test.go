package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/coven-run/coven/internal/session/trace"
)

// cmdCollector implements collector FILE VARIABLE: it starts a receiver of OTLP over HTTP, which writes the
// last request to FILE and its headers to FILE.headers, and sets the variable to the address. It refuses
// requests below /refuse.
func cmdCollector(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 2, "collector FILE VARIABLE")
	file := ts.MkAbs(args[0])
	var mu sync.Mutex
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/refuse/") {
			http.Error(w, "not now", http.StatusServiceUnavailable)
			return
		}
		if r.Method != http.MethodPost || r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/json" {
			http.Error(w, "no such place", http.StatusNotFound)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		var headers bytes.Buffer
		for name, values := range r.Header {
			fmt.Fprintf(&headers, "%s: %s\n", strings.ToLower(name), strings.Join(values, ", "))
		}
		data, err := io.ReadAll(r.Body)
		if err == nil {
			err = os.WriteFile(file, append(data, '\n'), 0o600)
		}
		if err == nil {
			err = os.WriteFile(file+".headers", headers.Bytes(), 0o600)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		io.WriteString(w, "{}") //nolint:errcheck // the sender may be gone
	}))
	ts.Defer(server.Close)
	ts.Setenv(args[1], server.URL)
}

// cmdSpans implements spans FILE: it prints the tree of the spans in the last line of FILE, as coven
// sessions trace does. It reads them with the package of the OpenTelemetry collector, and uses only their
// IDs to build the tree.
func cmdSpans(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 1, "spans FILE")
	var last []byte
	lines := bufio.NewScanner(strings.NewReader(ts.ReadFile(args[0])))
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		last = bytes.Clone(lines.Bytes())
	}
	data, err := (&ptrace.JSONUnmarshaler{}).UnmarshalTraces(last)
	ts.Check(err)
	if data.SpanCount() == 0 || data.ResourceSpans().Len() != 1 || data.ResourceSpans().At(0).ScopeSpans().Len() != 1 {
		ts.Fatalf("%d spans in %d resources", data.SpanCount(), data.ResourceSpans().Len())
	}
	spans := data.ResourceSpans().At(0).ScopeSpans().At(0).Spans()
	var root pcommon.SpanID
	var entries []trace.Entry
	chains := map[pcommon.SpanID][]string{} // of the IDs of spans
	for _, s := range spans.All() {
		if s.TraceID() != spans.At(0).TraceID() || s.TraceID().IsEmpty() || s.SpanID().IsEmpty() {
			ts.Fatalf("span %s has the trace %s", s.Name(), s.TraceID())
		}
		if s.ParentSpanID().IsEmpty() {
			root = s.SpanID()
			continue
		}
		chain := chains[s.ParentSpanID()]
		if s.ParentSpanID() == root {
			chain = []string{"user"}
		} else if chain == nil {
			ts.Fatalf("nobody is above the span %s", s.Name())
		}
		chains[s.SpanID()] = append(chain[:len(chain):len(chain)], s.SpanID().String())
		entries = append(entries, entryOf(s, chains[s.SpanID()]))
	}
	text := trace.Text("", 0, entries, time.Time{})
	_, text, _ = strings.Cut(text, "Execution Trace:\n")
	io.WriteString(ts.Stdout(), text) //nolint:errcheck // a buffer
}

// entryOf converts the span of an agent to an entry.
func entryOf(s ptrace.Span, chain []string) trace.Entry {
	text := func(key string) string {
		if v, ok := s.Attributes().Get(key); ok {
			return v.AsString()
		}
		return ""
	}
	var tokens int64
	if v, ok := s.Attributes().Get("coven.tokens"); ok {
		tokens = v.Int()
	}
	return trace.Entry{
		AgentName: text("gen_ai.agent.name"), ParentChain: chain, ID: text("coven.subagent"), Reviewer: text("coven.reviewer"), Status: text("coven.status"),
		Error: s.Status().Message(), Model: text("gen_ai.request.model"), Tokens: tokens,
		DurationMS: s.EndTimestamp().AsTime().UnixMilli() - s.StartTimestamp().AsTime().UnixMilli(),
	}
}
