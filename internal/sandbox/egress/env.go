package egress

import (
	"fmt"
	"net/http"
	"net/url"
)

// noProxy lists the hosts that programs connect to directly: this machine. Some programs expect brackets
// around an IPv6 address, others do not.
const noProxy = "localhost,127.0.0.1,::1,[::1]"

// URL returns the proxy's URL, which contains the token.
func (p *Proxy) URL() string {
	return (&url.URL{Scheme: "http", User: url.UserPassword(user, p.token), Host: p.address.String()}).String()
}

// Port returns the proxy's port on this machine's loopback.
func (p *Proxy) Port() int { return int(p.address.Port()) }

// Transport returns a transport that makes all connections through the proxy, even those to this
// machine. It keeps no connections alive.
func (p *Proxy) Transport() (*http.Transport, error) {
	proxy, err := url.Parse(p.URL())
	if err != nil {
		return nil, fmt.Errorf("use the network proxy: %w", err)
	}
	return &http.Transport{
		Proxy: http.ProxyURL(proxy), DisableKeepAlives: true, ForceAttemptHTTP2: true,
		TLSHandshakeTimeout: p.limits.ConnectTimeout, MaxResponseHeaderBytes: int64(p.limits.HeaderBytes),
	}, nil
}

// Env returns the variables that make programs use the proxy. They override those of the
// user's environment.
func (p *Proxy) Env() []string {
	proxy := p.URL()
	var env []string
	for _, name := range proxyVariables {
		env = append(env, name+"="+proxy)
	}
	for _, name := range []string{"NO_PROXY", "no_proxy", "npm_config_noproxy"} {
		env = append(env, name+"="+noProxy)
	}
	return append(env, "NODE_USE_ENV_PROXY=1") // Node.js: fetch from 22.21 and 24, http from 24.5
}

// proxyVariables lists the variables that contain the proxy's URL. Most programs read the
// first six. The others override proxies in the user's settings of a program: ~/.npmrc,
// Cargo's configuration. Yarn 2 and later reads only its own variables, and rejects YARN_NO_PROXY.
var proxyVariables = []string{
	"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy",
	"npm_config_proxy", "npm_config_https_proxy", "CARGO_HTTP_PROXY", "YARN_HTTP_PROXY", "YARN_HTTPS_PROXY",
}
