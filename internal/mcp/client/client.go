// Package client connects agents of coven to MCP servers: programs that coven starts, and addresses. It is coven's
// side of the connections; package mcp has the other one, coven as a server.
//
// Rules:
//   - Servers connect at once, and have a limit of time to do so. One that fails stops none of the others, and
//     what was wrong with it is kept.
//   - All pages of a server's tools count, and those that it announces later. A tool keeps its name, unless
//     another has the same: then both have their server's name in front, as in files_search.
//   - A call ends with its context, and the server is told. A server that ended is started again for the next call,
//     a few times; the call during which it ended is not repeated, because it may have had an effect.
//   - What a server sends is data: it has limits of size, and no part of it is more than text for a model.
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

	"github.com/coven-run/coven/internal/lazyregexp"
	"github.com/coven-run/coven/internal/mcp/servers"
	"github.com/coven-run/coven/internal/tool"
)

// The limits, unless Options say otherwise.
const (
	connectTime = 10 * time.Second
	callTime    = 10 * time.Minute
	maxRestarts = 3
	maxTools    = 512      // of a server
	maxSchema   = 64 << 10 // bytes of the schema of a tool's arguments
	maxText     = 4 << 10  // bytes of the description of a tool
	maxResult   = 256 << 10
)

// Options configures Connect.
type Options struct {
	Version string
	Getenv  func(string) string // of the user
	// Start returns the command of a server whose texts are expanded, ready to start, with everything set but its
	// standard streams. release is called after its end.
	Start func(ctx context.Context, s servers.Server) (cmd *exec.Cmd, release func(), err error)
	// Log takes what a server prints for people; nil: nobody does.
	Log func(server string) io.Writer
	// Taken are names that tools of servers must not have.
	Taken []string
	// Changed is called when a server has other tools than before; nil: nobody is told.
	Changed func()
	// Stale is called, once for a server, when it has changed its tools and they cannot be read: those from before
	// count. nil: nobody is told.
	Stale func(Failure)
	// HTTP connects to addresses; nil: http.DefaultTransport.
	HTTP http.RoundTripper
	// ConnectTime and CallTime limit the time that a server has; 0: 10 seconds, 10 minutes.
	ConnectTime, CallTime time.Duration
}

// Tool is a tool of a server.
type Tool struct {
	tool.Tool
	Server   string
	Original string // its name at the server
}

// Set is the servers that an agent uses. It is safe for concurrent use.
type Set struct {
	options Options
	all     []*connection

	mu       sync.Mutex
	failures []Failure
}

// Failure is why a server cannot be used.
type Failure struct {
	Server string
	Err    error
}

// Connect connects to servers. It returns when each is ready, has failed, or is late.
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

// Failures returns what is wrong with servers that cannot be used, sorted by server.
func (s *Set) Failures() []Failure {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.failures)
}

// Tools returns the tools that the servers have now, sorted by server and name.
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

// names are those that tools have, each with the number of the last that wanted it.
type names map[string]int

// unique returns a name that no tool has, and takes it: names may differ only in what a name cannot have, or in what is
// too long.
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

// maxName limits the length of a name: APIs of models accept 64 bytes, and agent CLIs add to it.
const maxName = 60

var noName = lazyregexp.New(`[^A-Za-z0-9_-]+`)

// plain returns a name as APIs of models accept it.
func plain(name string) string {
	name = noName.ReplaceAllString(name, "_")
	return name[:min(len(name), maxName)]
}

// Close ends the connections, and the programs with everything that they have started.
func (s *Set) Close() {
	var wg sync.WaitGroup
	for _, c := range s.all {
		wg.Go(c.close)
	}
	wg.Wait()
}

// The reasons for which a call fails although the server may be well.
var (
	errLate   = errors.New("it does not answer")
	errClosed = errors.New("the agent that it was for has ended")
	errEnded  = errors.New("the server ended, maybe during the call: check what it did before you repeat it")
)

func late(limit time.Duration) error { return fmt.Errorf("%w within %s", errLate, limit) }
