package config

import (
	"fmt"
	"net/url"
)

// telemetry checks the section telemetry.
func (r reader) telemetry(t Telemetry) {
	if at := r.at("telemetry.endpoint"); at.Set() && !isEndpoint(t.Endpoint) {
		r.doc.Fail(at, "an endpoint is an address such as http://localhost:4318", "")
	}
	if at := r.at("telemetry.file"); at.Set() && (!isPath(t.File) || t.File == "~") {
		r.doc.Fail(at, "a file is an absolute path, or one below ~", "")
	}
}

// embeddings checks the section search.embeddings.
func (r reader) embeddings(e Embeddings) {
	at := r.at("search.embeddings.url")
	switch {
	case at.Set() && !isEndpoint(e.URL):
		r.doc.Fail(at, "an endpoint is an address such as http://localhost:11434/v1", "")
	case at.Set() && e.Model == "":
		r.doc.Fail(at, "search.embeddings.model is missing", "")
	}
	if at := r.at("search.embeddings.key"); at.Set() && !variableRE.MatchString(e.Key) {
		r.doc.Fail(at, fmt.Sprintf("%q is not the name of a variable", e.Key), "")
	}
}

// isEndpoint reports whether a string is a base URL. A query or a fragment would be lost.
func isEndpoint(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && u.RawQuery == "" && u.Fragment == ""
}
