// Package embedding compares texts by their meaning, with the embeddings of an endpoint that speaks the API of OpenAI:
// POST URL/embeddings. Ollama, llama.cpp and vLLM have one on this machine.
//
// Vectors are kept in memory as long as the process runs. Nothing is asked for that is there.
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
	timeout = 20 * time.Second // of a request
	// maxKept is how many numbers of vectors are kept: 80 MB.
	maxKept    = 10 << 20
	maxNumbers = 8_192    // of a vector
	maxText    = 8_000    // bytes of a text that count
	maxAnswer  = 32 << 20 // bytes
	// pause is how long an endpoint is not asked after it has failed: searches do not wait for it again and again.
	pause = time.Minute
)

var errRedirects = errors.New("the endpoint redirects, and passages go to no other address")

// Endpoint embeds texts.
type Endpoint struct {
	URL       string // http://localhost:11434/v1
	Model     string
	Key       string            // for the endpoint; empty: it needs none
	Transport http.RoundTripper // nil: the network

	mu     sync.Mutex
	kept   map[[sha256.Size]byte][]float64 // of length 1
	size   int                             // of all that is kept, in numbers
	failed error                           // the last one
	until  time.Time                       // when to ask again after it
}

// Similarities returns how similar each text is to a query in its meaning: from -1 to 1, in the order of the texts.
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

// vectors returns the vectors of texts.
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

// askUnlessFailed asks the endpoint if it has not failed just now.
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

// vectorsAnswer is the answer of an endpoint.
type vectorsAnswer struct {
	Data []struct {
		Index     float64   `json:"index"` // some servers send 0.0
		Embedding []float64 `json:"embedding"`
	} `json:"data"`
}

// post sends texts and returns the answer. It follows no redirect, which would send passages to another address, and
// reads no answer without an end.
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
	if response.StatusCode/100 != 2 { // reading after 101 would not end
		return nil, fmt.Errorf("the endpoint answered %d", response.StatusCode)
	}
	var answer *vectorsAnswer // stays nil if it says null
	err = json.NewDecoder(http.MaxBytesReader(nil, response.Body, maxAnswer)).Decode(&answer)
	large, other := (*http.MaxBytesError)(nil), (*json.UnmarshalTypeError)(nil)
	switch {
	case errors.As(err, &large):
		return nil, fmt.Errorf("the answer is larger than %d MB", large.Limit>>20)
	case errors.As(err, &other): // which may quote a long number
		return nil, fmt.Errorf("the endpoint answered with JSON in which %q is no %s", other.Field, other.Type)
	case err != nil:
		return nil, fmt.Errorf("the endpoint did not answer with vectors: %w", err)
	}
	return answer, nil
}

// maxError limits an error that is shown, in bytes: it may quote the endpoint.
const maxError = 500

func short(err error) error {
	if text := err.Error(); len(text) > maxError {
		return errors.New(strings.ToValidUTF8(text[:maxError], "") + "...")
	}
	return err
}

// ask asks the endpoint.
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

// unit returns a vector of length 1 in the same direction; nil: it has none, or too many numbers.
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
