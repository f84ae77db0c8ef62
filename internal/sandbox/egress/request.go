package egress

import (
	"cmp"
	"errors"
	"net/http"
)

// targetOf returns the host and port of a request, or an error if it is not a
// request for a proxy.
func targetOf(r *http.Request) (target, error) {
	switch {
	case r.URL.User != nil:
		return target{}, errors.New("the host has a user name")
	case r.URL.Host == "" || r.URL.Opaque != "":
		return target{}, errors.New("it names no host")
	}
	name, port := splitPort(r.URL.Host)
	if r.Method == http.MethodConnect {
		return tunnelTarget(r, name, port)
	}
	if r.URL.Scheme != "http" {
		return target{}, errors.New("only http:// URLs are forwarded; use CONNECT for others")
	}
	return newTarget(name, cmp.Or(port, "80"))
}

func tunnelTarget(r *http.Request, name, port string) (target, error) {
	switch {
	case r.URL.Path != "" || r.URL.RawQuery != "":
		return target{}, errors.New("CONNECT takes a host and a port only")
	case r.ContentLength != 0 || len(r.TransferEncoding) > 0:
		return target{}, errors.New("CONNECT has no body")
	case port == "":
		return target{}, errors.New("CONNECT needs a port")
	}
	return newTarget(name, port)
}

func newTarget(name, port string) (target, error) {
	h, err := parseHost(name)
	if err != nil {
		return target{}, err
	}
	n, err := parsePort(port)
	return target{h, n}, err
}
