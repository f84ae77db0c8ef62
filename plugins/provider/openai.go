package provider

import (
	"net"
	"net/url"
)

// WithSystem is the first message of a CLI whose system prompt can only be added
// to by its command line: the system text comes before the task. In a
// conversation that is gone on with it was said before.
func WithSystem(req Request) []byte {
	const task = "# Your task\n\n"
	if req.System == "" || req.Resume {
		return []byte(task + req.Prompt)
	}
	return []byte(req.System + "\n\n" + task + req.Prompt)
}

// OpenAIAccount is the account of a CLI that asks the server with this base URL:
// local when it is on this machine, openai otherwise, also when it is empty.
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
