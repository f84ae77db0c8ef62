package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

func TestMetrics(t *testing.T) {
	var mu sync.Mutex
	var got []byte
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
		mu.Lock()
		defer mu.Unlock()
		if got = append(got, body...); err != nil || r.URL.Path != "/v1/metrics" {
			t.Errorf("%s %v", r.URL.Path, err)
		}
	}))
	defer receiver.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.URL)
	t.Setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "none")
	handler, end, err := metrics(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	handler.Counter("temporal_test").Inc(1)
	if err := end(t.Context()); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if !bytes.Contains(got, []byte("temporal_test")) {
		t.Errorf("got %q", got)
	}
}

func TestNoMetrics(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "")
	t.Setenv("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "")
	if handler, _, err := metrics(t.Context()); handler != nil || err != nil {
		t.Error(handler, err)
	}
}
