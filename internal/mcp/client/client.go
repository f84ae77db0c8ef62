// Package client connects coven's agents to MCP servers, which are programs or web addresses. Package mcp is the
// opposite direction: coven as a server.
//
// Rules:
//   - Servers connect concurrently, within a time limit. A server that fails does not affect the others, and its
//     error is recorded.
//   - All pages of a server's tools are read, including later updates. A tool keeps its name unless another tool has
//     the same name. Then both are prefixed with their server's name, as in files_search.
//   - A call ends with its context, and the server is notified. A server that ended is restarted for the next call,
//     a few times. The call during which it ended is not repeated, because it may have had an effect.
//   - The output of a server is untrusted data: its size is limited, and it is used only as text for a model.
package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/coven-run/coven/internal/mcp/servers"
	"github.com/coven-run/coven/internal/text/lazyregexp"
	"github.com/coven-run/coven/internal/tool"
)

// Default limits.
const (
	connectTime = 10 * time.Second
	callTime    = 10 * time.Minute
	maxRestarts = 3
	maxTools    = 512      // per server
	maxSchema   = 64 << 10 // bytes of the schema of a tool's arguments
	maxText     = 4 << 10  // bytes of the description of a tool
	maxResult   = 256 << 10
)

// Options configures Connect.
type Options struct {
	Version string
	Getenv  func(string) string // of the user's environment
	// Start returns the command of an expanded server. Everything but the standard streams must be
	// set. release is called after the command has ended.
	Start func(ctx context.Context, s servers.Server) (cmd *exec.Cmd, release func(), err error)
	// Log returns the writer for a server's standard error. If it is nil, the output is discarded.
	Log func(server string) io.Writer
	// Taken lists names that server tools must not have.
	Taken []string
	// Changed is called when a server's tools have changed. May be nil.
	Changed func()
	// Stale is called once per server, when its changed tools cannot be read and the old list stays in
	// use. May be nil.
	Stale func(Failure)
	// HTTP is the transport for addresses. It defaults to http.DefaultTransport.
	HTTP http.RoundTripper
	// ConnectTime and CallTime limit connecting and calls. They default to 10 seconds and 10 minutes.
	ConnectTime, CallTime time.Duration
}

// Tool is a tool of a server.
type Tool struct {
	tool.Tool
	Server   string
	Original string // its name at the server
}

// Set is a set of servers for an agent. It is safe for concurrent use.
type Set struct {
	options Options
	all     []*connection

	mu       sync.Mutex
	failures []Failure
}

// Failure is the error of a server that cannot be used.
type Failure struct {
	Server string
	Err    error
}

// Connect connects to servers. It returns when each one is ready, has failed, or has timed out.
func Connect(ctx context.Context, all []servers.Server, o Options) *Set {
	o.ConnectTime, o.CallTime = cmp.Or(o.ConnectTime, connectTime), cmp.Or(o.CallTime, callTime)
	s := &Set{options: o}
	var wg sync.WaitGroup
	for _, server := range all {
		c := &connection{server: server, set: s}
		s.all = append(s.all, c)
		wg.Go(func() {
			if err := c.connect(ctx); err != nil {
				s.fail(server.Name, err)
			}
		})
	}
	wg.Wait()
	return s
}

func (s *Set) fail(server string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failures = append(s.failures, Failure{server, err})
	slices.SortFunc(s.failures, func(a, b Failure) int { return cmp.Compare(a.Server, b.Server) })
}

// Failures returns the errors of servers that cannot be used, sorted by server.
func (s *Set) Failures() []Failure {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.failures)
}

// Tools returns the current tools of the servers, sorted by server and name.
func (s *Set) Tools() []Tool {
	count := map[string]int{}
	used := names{}
	for _, name := range s.options.Taken {
		count[name]++
		used[name] = 1
	}
	for _, c := range s.all {
		for _, t := range c.known() {
			count[plain(t.Name)]++
		}
	}
	var all []Tool
	for _, c := range s.all {
		for _, t := range c.known() {
			name := plain(t.Name)
			if count[name] > 1 {
				name = plain(c.server.Name + "_" + t.Name)
			}
			all = append(all, c.tool(used.unique(name), t))
		}
	}
	return all
}

// names maps each used name to the number of its last suffix.
type names map[string]int

// unique returns an unused name and marks it as used. Names can collide because plain replaces and truncates
// parts of them.
func (n names) unique(name string) string {
	free := name
	for n[free] > 0 || free == "" {
		n[name]++
		number := "_" + strconv.Itoa(n[name])
		free = name[:min(len(name), maxName-len(number))] + number
	}
	n[free] = 1
	return free
}

// maxName limits the length of a name in bytes. APIs accept 64 bytes, and agent CLIs add a prefix.
const maxName = 60

var noName = lazyregexp.New(`[^A-Za-z0-9_-]+`)

// plain converts a name to the form that model APIs accept.
func plain(name string) string {
	name = noName.ReplaceAllString(name, "_")
	return name[:min(len(name), maxName)]
}

// Close ends the connections and kills the programs with all their descendants.
func (s *Set) Close() {
	var wg sync.WaitGroup
	for _, c := range s.all {
		wg.Go(c.close)
	}
	wg.Wait()
}

// Errors of calls that do not mean that the server is broken.
var (
	errLate   = errors.New("it does not answer")
	errClosed = errors.New("the agent that it was for has ended")
	errEnded  = errors.New("the server ended, maybe during the call: check what it did before you repeat it")
)

func late(limit time.Duration) error { return fmt.Errorf("%w within %s", errLate, limit) }
