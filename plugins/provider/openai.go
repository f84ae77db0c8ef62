package provider

import (
	"net"
	"net/url"
)

// WithSystem returns the first message for a CLI that cannot append to its system prompt: the system text,
// then the task. It omits the system text in a resumed conversation, which already contains it.
func WithSystem(req Request) []byte {
	const task = "# Your task\n\n"
	if req.System == "" || req.Resume {
		return []byte(task + req.Prompt)
	}
	return []byte(req.System + "\n\n" + task + req.Prompt)
}

// OpenAIAccount returns the account of a CLI that uses the server at a base URL: "local" for a server on
// this machine, and "openai" for any other server or an empty URL.
func OpenAIAccount(base string) string {
	server, err := url.Parse(base)
	if err != nil {
		return "openai"
	}
	if ip := net.ParseIP(server.Hostname()); server.Hostname() == "localhost" || ip != nil && ip.IsLoopback() {
		return "local"
	}
	return "openai"
}
