package config

import "net/url"

// telemetry checks where traces go.
func (r reader) telemetry(t Telemetry) {
	if at := r.at("telemetry.endpoint"); at.Set() && !isEndpoint(t.Endpoint) {
		r.doc.Fail(at, "an endpoint is an address such as http://localhost:4318", "")
	}
	if at := r.at("telemetry.file"); at.Set() && (!isPath(t.File) || t.File == "~") {
		r.doc.Fail(at, "a file is an absolute path, or one below ~", "")
	}
}

// isEndpoint reports whether a text is the base address of a receiver. A query and a fragment would be lost.
func isEndpoint(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && u.RawQuery == "" && u.Fragment == ""
}
