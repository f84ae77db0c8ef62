// Package embedding compares texts by meaning, with the embeddings of an endpoint that implements OpenAI's API:
// POST URL/embeddings. Ollama, llama.cpp and vLLM offer one locally.
//
// Vectors are cached in memory while the process runs.
package embedding

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strings"
	"sync"
	"time"
)

const (
	timeout = 20 * time.Second // per request
	// maxKept limits the cache, in vector components: 80 MB.
	maxKept    = 10 << 20
	maxNumbers = 8_192    // components per vector
	maxText    = 8_000    // bytes; the rest of a text is ignored
	maxAnswer  = 32 << 20 // bytes
	// pause is how long a failed endpoint is not asked again, so that searches do not keep waiting for it.
	pause = time.Minute
)

var errRedirects = errors.New("the endpoint redirects, and passages go to no other address")

// Endpoint computes embeddings of texts.
type Endpoint struct {
	URL       string // http://localhost:11434/v1
	Model     string
	Key       string            // optional
	Transport http.RoundTripper // nil for the default

	mu     sync.Mutex
	kept   map[[sha256.Size]byte][]float64 // normalized vectors
	size   int                             // total components in kept
	failed error                           // last error
	until  time.Time                       // end of the pause after failed
}

// Similarities returns the similarity of each text to a query, from -1 to 1, in the order of the texts.
func (e *Endpoint) Similarities(ctx context.Context, query string, texts []string) ([]float64, error) {
	vectors, err := e.vectors(ctx, append([]string{query}, texts...))
	if err != nil {
		return nil, fmt.Errorf("embeddings of %s: %w", e.Model, err)
	}
	similar := make([]float64, len(texts))
	for i, v := range vectors[1:] {
		if len(v) != len(vectors[0]) {
			return nil, fmt.Errorf("embeddings of %s: one has %d numbers, another %d", e.Model, len(vectors[0]), len(v))
		}
		for j := range v {
			similar[i] += v[j] * vectors[0][j]
		}
	}
	return similar, nil
}

// vectors returns the vectors of texts, from the cache or the endpoint.
func (e *Endpoint) vectors(ctx context.Context, texts []string) ([][]float64, error) {
	keys := make([][sha256.Size]byte, len(texts))
	var unknown []string
	var places []int
	found := make([][]float64, len(texts))
	e.mu.Lock()
	for i, text := range texts {
		texts[i] = text[:min(len(text), maxText)]
		keys[i] = sha256.Sum256([]byte(texts[i]))
		if found[i] = e.kept[keys[i]]; found[i] == nil {
			unknown, places = append(unknown, texts[i]), append(places, i)
		}
	}
	e.mu.Unlock()
	if len(unknown) == 0 {
		return found, nil
	}
	asked, err := e.askUnlessFailed(ctx, unknown)
	if err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	size := 0
	for _, v := range asked {
		size += len(v)
	}
	if e.kept == nil || e.size+size > maxKept {
		e.kept, e.size = map[[sha256.Size]byte][]float64{}, 0
	}
	e.size += size
	for n, i := range places {
		found[i], e.kept[keys[i]] = asked[n], asked[n]
	}
	return found, nil
}

// askUnlessFailed calls ask, but returns the last error during the pause after a failure.
func (e *Endpoint) askUnlessFailed(ctx context.Context, texts []string) ([][]float64, error) {
	e.mu.Lock()
	failed, until := e.failed, e.until
	e.mu.Unlock()
	if time.Now().Before(until) {
		return nil, failed
	}
	all, err := e.ask(ctx, texts)
	if err != nil && ctx.Err() == nil {
		e.mu.Lock()
		e.failed, e.until = err, time.Now().Add(pause)
		e.mu.Unlock()
	}
	return all, err
}

// vectorsAnswer is the response of the endpoint.
type vectorsAnswer struct {
	Data []struct {
		Index     float64   `json:"index"` // some servers send 0.0
		Embedding []float64 `json:"embedding"`
	} `json:"data"`
}

// post sends texts and returns the response. It does not follow redirects, which would send passages to another
// address, and it limits the size of the response.
func (e *Endpoint) post(ctx context.Context, texts []string) (*vectorsAnswer, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	body, err := json.Marshal(map[string]any{"model": e.Model, "input": texts})
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimRight(e.URL, "/")+"/embeddings", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("User-Agent", "coven")
	request.Header.Set("Accept", "application/json")
	request.Header.Set("Content-Type", "application/json")
	if e.Key != "" {
		request.Header.Set("Authorization", "Bearer "+e.Key)
	}
	client := http.Client{Transport: e.Transport, CheckRedirect: func(*http.Request, []*http.Request) error { return errRedirects }}
	response, err := client.Do(request)
	if err != nil {
		return nil, short(err)
	}
	defer response.Body.Close()       //nolint:errcheck // only read
	if response.StatusCode/100 != 2 { // the body of a 101 response would not end
		return nil, fmt.Errorf("the endpoint answered %d", response.StatusCode)
	}
	var answer *vectorsAnswer // nil if the body is null
	err = json.NewDecoder(http.MaxBytesReader(nil, response.Body, maxAnswer)).Decode(&answer)
	large, other := (*http.MaxBytesError)(nil), (*json.UnmarshalTypeError)(nil)
	switch {
	case errors.As(err, &large):
		return nil, fmt.Errorf("the answer is larger than %d MB", large.Limit>>20)
	case errors.As(err, &other): // the original message may quote a long number
		return nil, fmt.Errorf("the endpoint answered with JSON in which %q is no %s", other.Field, other.Type)
	case err != nil:
		return nil, fmt.Errorf("the endpoint did not answer with vectors: %w", err)
	}
	return answer, nil
}

// maxError limits the length of an error in bytes, because it may quote the endpoint.
const maxError = 500

func short(err error) error {
	if text := err.Error(); len(text) > maxError {
		return errors.New(strings.ToValidUTF8(text[:maxError], "") + "...")
	}
	return err
}

// ask requests the vectors of texts from the endpoint.
func (e *Endpoint) ask(ctx context.Context, texts []string) ([][]float64, error) {
	answer, err := e.post(ctx, texts)
	if err != nil {
		return nil, err
	}
	if answer == nil {
		return nil, errors.New("the endpoint answered nothing")
	}
	all := make([][]float64, len(texts))
	for _, one := range answer.Data {
		if i := one.Index; i >= 0 && i < float64(len(all)) {
			all[int(i)] = unit(one.Embedding)
		}
	}
	for _, v := range all {
		if v == nil {
			return nil, fmt.Errorf("the endpoint answered with %d usable vectors for %d texts", usable(all), len(texts))
		}
	}
	return all, nil
}

func usable(all [][]float64) (n int) {
	for _, v := range all {
		if v != nil {
			n++
		}
	}
	return n
}

// unit normalizes a vector to length 1. It returns nil if that is impossible or if it has too many components.
func unit(v []float64) []float64 {
	if len(v) > maxNumbers {
		return nil
	}
	sum := 0.0
	for _, x := range v {
		sum += x * x
	}
	length := math.Sqrt(sum)
	if length == 0 || math.IsNaN(length) || math.IsInf(length, 0) {
		return nil
	}
	scaled := make([]float64, len(v))
	for i, x := range v {
		scaled[i] = x / length
	}
	return scaled
}
