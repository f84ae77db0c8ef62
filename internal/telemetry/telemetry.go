// Package telemetry exports the execution traces of sessions in OpenTelemetry's format: one span for each session
// and, below it, one for each run of an agent, below its parent agent. It sends OTLP in JSON
// encoding to a receiver over HTTP, and appends it to a file with one request per line.
// docs/decisions/telemetry.md explains why it does not use OpenTelemetry's SDK.
package telemetry

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/coven-run/coven/internal/file/regularfile"
	"github.com/coven-run/coven/internal/session/trace"
	"github.com/coven-run/coven/internal/text/oneline"
)

// Session is the data of a session in its trace.
type Session struct {
	ID       string
	TraceID  string // a UUID; empty for a session without one
	Task     string
	Status   string // completed, failed or cancelled
	Detail   string // reason if it did not complete
	Started  time.Time
	Ended    time.Time
	CostUSD  float64
	Entries  []trace.Entry
	Resource Resource
}

// Resource identifies the coven that produced a trace.
type Resource struct {
	Version string
	Project string // name of the repository's directory
}

// To is the destination of traces. The zero value exports nothing.
type To struct {
	Endpoint string // base URL of an OTLP/HTTP receiver, without /v1/traces
	File     string
	Headers  map[string]string // for requests to the receiver
}

// maxTime is the timeout of a request.
const maxTime = 10 * time.Second

// Export sends the trace of an ended session to all destinations.
func Export(ctx context.Context, to To, s Session) error {
	if to.Endpoint == "" && to.File == "" {
		return nil
	}
	id, err := uuid.Parse(s.TraceID)
	if err != nil {
		return fmt.Errorf("the trace id of session %s: %w", s.ID, err)
	}
	data, err := json.Marshal(s.request(traceID(id)))
	if err != nil {
		return fmt.Errorf("encode the trace: %w", err)
	}
	var errs []error
	if to.File != "" {
		errs = append(errs, appendLine(to.File, data))
	}
	if to.Endpoint != "" {
		errs = append(errs, post(ctx, to, data))
	}
	return errors.Join(errs...)
}

// request returns the request with the spans of a session.
func (s Session) request(id traceID) request {
	var of attributes
	of.text("service.name", "coven")
	of.text("service.version", s.Resource.Version)
	of.text("coven.project", s.Resource.Project)
	root := s.span(id)
	spans := []span{root}
	for _, n := range trace.Tree(s.Entries) {
		spans = below(spans, root, s, n)
	}
	return request{[]resourceSpans{{
		resource{of},
		[]scopeSpans{{scope{"github.com/coven-run/coven", s.Resource.Version}, spans}},
	}}}
}

// span returns the span of the session itself.
func (s Session) span(id traceID) span {
	var a attributes
	a.text("coven.session", s.ID)
	a.text("coven.task", s.Task)
	a.text("coven.status", s.Status)
	a.double("coven.cost_usd", s.CostUSD)
	return span{
		TraceID: id, SpanID: spanOf(id[:]), Name: "session " + s.ID, Kind: kindInternal,
		Start: nanoseconds(s.Started), End: nanoseconds(later(s.Started, s.Ended)), Attributes: a, Status: statusOf(s.Status, s.Detail),
	}
}

// below adds the span of an agent and those of its subagents.
func below(spans []span, parent span, s Session, n *trace.Node) []span {
	e := n.Entry
	started, err := e.SpawnedAt.MarshalText()
	if err != nil { // a year after 9999
		started = nil
	}
	id := spanOf(parent.TraceID[:], []byte(strings.Join([]string{e.TraceID, e.Path, e.Reviewer, e.ID}, "\x00")), started)
	var a attributes
	a.text("gen_ai.operation.name", "invoke_agent")
	a.text("gen_ai.agent.name", e.AgentName)
	a.text("gen_ai.request.model", e.Model)
	a.text("coven.trace_id", e.TraceID)
	a.text("coven.parent_trace_id", e.ParentTraceID)
	a.text("coven.step", e.Path)
	a.text("coven.reviewer", e.Reviewer)
	a.text("coven.subagent", e.ID)
	a.text("coven.status", e.Status)
	a.int("coven.tokens", e.Tokens)
	a.int("coven.duration_ms", e.DurationMS)
	a.texts("coven.parent_chain", e.ParentChain)
	one := span{
		TraceID: parent.TraceID, SpanID: id, Parent: &parent.SpanID, Name: "invoke_agent " + e.AgentName, Kind: kindInternal,
		Start: nanoseconds(e.SpawnedAt), End: nanoseconds(later(e.SpawnedAt, cmp.Or(e.CompletedAt, s.Ended))), Attributes: a, Status: statusOf(e.Status, e.Error),
	}
	spans = append(spans, one)
	for _, child := range n.Children {
		spans = below(spans, one, s, child)
	}
	return spans
}

// later returns ended, but not earlier than started.
func later(started, ended time.Time) time.Time {
	if ended.Before(started) {
		return started
	}
	return ended
}

func statusOf(state, why string) status {
	if state == "completed" {
		return status{Code: statusOK}
	}
	return status{Code: statusError, Message: oneline.Of(cmp.Or(why, state))}
}

// spanOf returns the ID of a span. It is the same for each export of a trace.
func spanOf(parts ...[]byte) (id spanID) {
	sum := sha256.Sum256(bytes.Join(parts, []byte{0}))
	copy(id[:], sum[:])
	return id
}

// appendLine appends a line to a file in a single write, so that concurrent covens do not mix their lines.
func appendLine(path string, data []byte) error {
	f, err := regularfile.OpenFileIn(filepath.Dir(path), filepath.Base(path), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("write the trace to %s: %w", path, err)
	}
	_, err = f.Write(append(data, '\n'))
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write the trace to %s: %w", path, err)
	}
	return nil
}

// post sends a request to the receiver.
func post(ctx context.Context, to To, data []byte) error {
	ctx, cancel := context.WithTimeout(ctx, maxTime)
	defer cancel()
	at, err := url.JoinPath(to.Endpoint, "v1", "traces")
	if err != nil {
		return fmt.Errorf("the endpoint %s: %w", to.Endpoint, err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, at, bytes.NewReader(data))
	if err != nil {
		return fmt.Errorf("the endpoint %s: %w", to.Endpoint, err)
	}
	for name, text := range to.Headers {
		req.Header.Set(name, text)
	}
	req.Header.Set("Content-Type", "application/json")
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }} // headers may contain a key
	defer client.CloseIdleConnections()
	resp, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("send the trace: %w", err)
	}
	defer resp.Body.Close()                               //nolint:errcheck // read only
	said, _ := io.ReadAll(io.LimitReader(resp.Body, 300)) // a read error shortens the message
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("send the trace: %s answers %s: %s", at, resp.Status, oneline.Of(string(said)))
	}
	return nil
}

// HeadersVariable is OpenTelemetry's environment variable with headers for receivers: name=value,name=value, with
// percent-encoded values.
const HeadersVariable = "OTEL_EXPORTER_OTLP_HEADERS"

// Headers parses the value of HeadersVariable.
func Headers(text string) (map[string]string, error) {
	all := map[string]string{}
	for pair := range strings.SplitSeq(text, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		name, encoded, ok := strings.Cut(pair, "=")
		decoded, err := url.PathUnescape(strings.TrimSpace(encoded))
		if name = strings.TrimSpace(name); !ok || err != nil || name == "" {
			return nil, fmt.Errorf("%s is not name=value,name=value", HeadersVariable) // omit the value, which may be a key
		}
		all[name] = decoded
	}
	return all, nil
}
