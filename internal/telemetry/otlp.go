package telemetry

import (
	"encoding/hex"
	"encoding/json"
	"strconv"
	"time"
)

// The messages of OTLP 1.x that coven uses, in JSON encoding. See
// https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding. IDs are hexadecimal, 64-bit integers are
// strings, and enumerations are numbers.
type (
	request struct {
		ResourceSpans []resourceSpans `json:"resourceSpans"`
	}
	resourceSpans struct {
		Resource   resource     `json:"resource"`
		ScopeSpans []scopeSpans `json:"scopeSpans"`
	}
	resource struct {
		Attributes []attribute `json:"attributes"`
	}
	scopeSpans struct {
		Scope scope  `json:"scope"`
		Spans []span `json:"spans"`
	}
	scope struct {
		Name    string `json:"name"`
		Version string `json:"version"`
	}
	span struct {
		TraceID    traceID     `json:"traceId"`
		SpanID     spanID      `json:"spanId"`
		Parent     *spanID     `json:"parentSpanId,omitempty"`
		Name       string      `json:"name"`
		Kind       int         `json:"kind"`
		Start      nanoseconds `json:"startTimeUnixNano"`
		End        nanoseconds `json:"endTimeUnixNano"`
		Attributes []attribute `json:"attributes"`
		Status     status      `json:"status"`
	}
	status struct {
		Message string `json:"message,omitempty"`
		Code    int    `json:"code,omitempty"`
	}
	attribute struct {
		Key   string `json:"key"`
		Value value  `json:"value"`
	}
	value struct {
		String *string    `json:"stringValue,omitempty"`
		Int    *integer   `json:"intValue,omitempty"`
		Double *float64   `json:"doubleValue,omitempty"`
		Array  *textArray `json:"arrayValue,omitempty"`
	}
	textArray struct {
		Values []value `json:"values"`
	}
	traceID     [16]byte
	spanID      [8]byte
	integer     int64
	nanoseconds time.Time
)

// Values of enumerations.
const (
	kindInternal = 1
	statusOK     = 1
	statusError  = 2
)

func (id traceID) MarshalText() ([]byte, error) { return []byte(hex.EncodeToString(id[:])), nil }
func (id spanID) MarshalText() ([]byte, error)  { return []byte(hex.EncodeToString(id[:])), nil }

func (i integer) MarshalJSON() ([]byte, error) { return json.Marshal(strconv.FormatInt(int64(i), 10)) }

func (n nanoseconds) MarshalJSON() ([]byte, error) {
	return json.Marshal(strconv.FormatInt(time.Time(n).UnixNano(), 10))
}

// attributes is an ordered list of attributes.
type attributes []attribute

func (a *attributes) text(key, text string) {
	if text != "" {
		*a = append(*a, attribute{key, value{String: &text}})
	}
}

func (a *attributes) int(key string, n int64) {
	i := integer(n)
	*a = append(*a, attribute{key, value{Int: &i}})
}

func (a *attributes) double(key string, f float64) {
	*a = append(*a, attribute{key, value{Double: &f}})
}

func (a *attributes) texts(key string, all []string) {
	array := textArray{Values: []value{}}
	for _, text := range all {
		array.Values = append(array.Values, value{String: &text})
	}
	*a = append(*a, attribute{key, value{Array: &array}})
}
