// Package fakeforge is a host of repositories on the loopback interface: GitHub, as far as the plugin github and the program gh use
// it. Tests control it with the methods of Server.
//
// The branches are those of a bare repository. Merging makes the commit in it. GraphQL queries are validated and executed
// field by field, by the part of GitHub's schema in schema.graphql. Each token is accepted, and its user is the owner.
package fakeforge

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// User is the login of the user of each token.
const User = "owner"

// Server is a fake host with one repository. It serves until Close.
type Server struct {
	// Host is the address of the server: "127.0.0.1:PORT". API is the address of its REST API.
	Host, API string
	// Path is the path of the repository: "OWNER/NAME".
	Path string

	git    bare
	server *http.Server

	mu       sync.Mutex
	former   []string // paths before the repository was renamed
	pulls    []*pull
	checks   map[string][]*check // by commit
	next     int                 // number of the next check, comment or thread
	now      time.Time           // time of the last change
	required []string            // checks, on each branch
	reviews  int                 // required approvals
	queue    bool
	faults   []string // of the next requests
	points   int      // that remain
	until    time.Time
	total    int // of points used
	requests map[string]int
	tokens   map[string]bool // hosts and the Authorization headers that were sent to them
}

// pull is a pull request.
type pull struct {
	number         int
	title, body    string
	head, base     string // branches
	fork           string // path of the repository of head, or empty
	state          string // OPEN, MERGED or CLOSED
	draft, locked  bool
	last           string // last commit of head
	commit, by     string // of the merge
	gone           bool
	position       int // in the merge queue
	created, ended time.Time
	updated        time.Time
	comments       []*comment
	reviews        []*comment
	threads        []*thread
}

// comment is a comment or a review.
type comment struct {
	id, by, association, text, state string
	bot                              bool
	time                             time.Time
	commit                           string
	line, from                       int
}

// thread is a thread of comments on lines.
type thread struct {
	id, path, side string
	resolved       bool
	comments       []*comment
}

// check is a check run.
type check struct {
	number           int
	name             string
	status           string // QUEUED, IN_PROGRESS or COMPLETED
	conclusion       string
	app, workflow    string
	summary, log     string
	started, stopped time.Time
	isStatus         bool // a commit status
}

// perHour is the rate limit in points.
const perHour = 5000

// New starts a host on a free port of the loopback interface. dir is the bare repository of the host's repository.
func New(dir, path string) (*Server, error) {
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start fake forge: %w", err)
	}
	host := listener.Addr().String()
	s := &Server{
		Host: host, API: "http://" + host + "/api/v3", Path: path, git: bare{dir, map[[2]string]string{}}, now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		checks: map[string][]*check{}, points: perHour, requests: map[string]int{}, tokens: map[string]bool{},
	}
	s.server = &http.Server{Handler: s.handler()} //nolint:gosec // loopback; a late answer has no time limit
	go func() { _ = s.server.Serve(listener) }()  // ends only with Close
	return s, nil
}

// Close stops the server and drops every connection.
func (s *Server) Close() error {
	if err := s.server.Close(); err != nil {
		return fmt.Errorf("stop fake forge: %w", err)
	}
	return nil
}

// tick returns the time of a change. Each is later than the one before.
func (s *Server) tick() time.Time {
	s.now = s.now.Add(time.Second)
	return s.now
}

// id returns a new number.
func (s *Server) id() int {
	s.next++
	return 1000 + s.next
}

// pull returns a pull request that is not gone, or nil.
func (s *Server) pull(number int) *pull {
	for _, p := range s.pulls {
		if p.number == number && !p.gone {
			return p
		}
	}
	return nil
}

// change changes a pull request.
func (s *Server) change(number int, change func(p *pull) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.pull(number)
	if p == nil {
		return fmt.Errorf("there is no pull request %d", number)
	}
	s.follow(p)
	if err := change(p); err != nil {
		return err
	}
	p.updated = s.tick()
	return nil
}

// follow notices pushes to the branch of a pull request.
func (s *Server) follow(p *pull) {
	if p.state != "OPEN" {
		return
	}
	if head, err := s.git.commit(p.head); err == nil && head != p.last {
		p.last, p.updated = head, s.tick()
	}
}

// Check sets the result of a check of the head of a pull request: pending, passed, failed, or a conclusion of GitHub such as timed_out. A completed
// check runs again. log is its log, in which the step of the lines after "@ NAME" is NAME. The app is GitHub Actions, unless name begins with APP: or status:.
func (s *Server) Check(number int, name, status, log string) error {
	return s.change(number, func(p *pull) error {
		s.setCheck(p.last, name, status, log)
		return nil
	})
}

func (s *Server) setCheck(commit, name, status, log string) {
	app, plain, found := strings.Cut(name, ":")
	if !found {
		app, plain = "github-actions", name
	}
	list := s.checks[commit]
	i := slices.IndexFunc(list, func(c *check) bool { return c.name == plain && c.app == app })
	if i < 0 || list[i].status == "COMPLETED" {
		c := &check{number: s.id(), name: plain, app: app, isStatus: app == "status", started: s.tick()}
		if app == "github-actions" {
			c.workflow = "CI"
		}
		if i >= 0 {
			list = slices.Delete(list, i, i+1)
		}
		list = append(list, c)
		s.checks[commit], i = list, len(list)-1
	}
	c := list[i]
	c.status, c.conclusion, c.log = "COMPLETED", strings.ToUpper(status), log
	switch status {
	case "pending":
		c.status, c.conclusion = "IN_PROGRESS", ""
	case "passed":
		c.conclusion = "SUCCESS"
	case "failed":
		c.conclusion = "FAILURE"
	}
	c.stopped = s.tick()
}

// OpenRequest opens a pull request, as a person does on the page, and returns its number.
func (s *Server) OpenRequest(head, base, title string) (number int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	commit, err := s.git.commit(head)
	if err != nil {
		return 0, fmt.Errorf("branch %s: %w", head, err)
	}
	return s.open(&pull{title: title, head: head, base: base, last: commit}).number, nil
}

// open adds an open pull request.
func (s *Server) open(p *pull) *pull {
	p.number, p.state, p.created = len(s.pulls)+1, "OPEN", s.tick()
	p.updated = p.created
	s.pulls = append(s.pulls, p)
	return p
}

// Require makes checks required on each branch.
func (s *Server) Require(names ...string) { s.set(func() { s.required = names }) }

// RequireReviews makes approvals required on each branch.
func (s *Server) RequireReviews(n int) { s.set(func() { s.reviews = n }) }

// Queue turns the merge queue on or off.
func (s *Server) Queue(on bool) { s.set(func() { s.queue = on }) }

func (s *Server) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
	s.tick()
}

// newComment returns a comment. A login can end with the association of its author: ann:NONE. The default is MEMBER.
func (s *Server) newComment(kind, by, text string) *comment {
	login, association, found := strings.Cut(by, ":")
	if !found {
		association = "MEMBER"
	}
	c := &comment{id: fmt.Sprintf("%s_%d", kind, s.id()), by: login, association: association, text: text, state: "SUBMITTED", time: s.tick()}
	c.bot = strings.HasSuffix(login, "[bot]")
	return c
}

// Comment adds a comment to a pull request: to a line, if place is PATH:LINE, to lines, if it is PATH:FROM-LINE, else to the whole.
// After PATH, a minus makes it a removed line: PATH:-LINE.
func (s *Server) Comment(number int, by, place, text string) error {
	return s.change(number, func(p *pull) error {
		if place == "" {
			p.comments = append(p.comments, s.newComment("IC", by, text))
			return nil
		}
		path, lines, _ := strings.Cut(place, ":")
		c := s.newComment("PRRC", by, text)
		t := &thread{id: fmt.Sprintf("PRRT_%d", s.id()), path: path, side: "RIGHT", comments: []*comment{c}}
		if rest, old := strings.CutPrefix(lines, "-"); old {
			t.side, lines = "LEFT", rest
		}
		c.commit = p.last
		if from, last, several := strings.Cut(lines, "-"); several {
			c.from, _ = strconv.Atoi(from)
			lines = last
		}
		c.line, _ = strconv.Atoi(lines)
		p.threads = append(p.threads, t)
		return nil
	})
}

// Lock locks the conversation of a pull request: nothing more is accepted of the owner.
func (s *Server) Lock(number int) error {
	return s.change(number, func(p *pull) error { p.locked = true; return nil })
}

// Answer adds an answer to the last thread of a pull request.
func (s *Server) Answer(number int, by, text string) error {
	return s.change(number, func(p *pull) error {
		if len(p.threads) == 0 {
			return fmt.Errorf("pull request %d has no thread", number)
		}
		s.answer(p.threads[len(p.threads)-1], by, text)
		return nil
	})
}

// answer adds an answer to a thread.
func (s *Server) answer(t *thread, by, text string) *comment {
	c, first := s.newComment("PRRC", by, text), t.comments[0]
	c.commit, c.line, c.from = first.commit, first.line, first.from
	t.comments = append(t.comments, c)
	return c
}

// Resolve resolves the threads of a pull request.
func (s *Server) Resolve(number int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.pull(number)
	if p == nil {
		return fmt.Errorf("there is no pull request %d", number)
	}
	for _, t := range p.threads {
		t.resolved = true // GitHub does not change the time of the pull request
	}
	return nil
}

// Review adds a review: APPROVED, CHANGES_REQUESTED or COMMENTED.
func (s *Server) Review(number int, by, state, text string) error {
	return s.change(number, func(p *pull) error {
		c := s.newComment("PRR", by, text)
		c.state, c.commit = state, p.last
		p.reviews = append(p.reviews, c)
		return nil
	})
}

// Merge merges a pull request, as a person does on the page. method is merge or squash.
func (s *Server) Merge(number int, by, method string) error {
	return s.change(number, func(p *pull) error { return s.merge(p, by, method) })
}

func (s *Server) merge(p *pull, by, method string) error {
	if p.state != "OPEN" {
		return fmt.Errorf("pull request %d is not open", p.number)
	}
	commit, err := s.git.merge(p.base, p.last, method, fmt.Sprintf("%s (#%d)", p.title, p.number))
	if err != nil {
		return err
	}
	p.state, p.commit, p.by, p.ended, p.position = "MERGED", commit, by, s.tick(), 0
	return nil
}

// CloseRequest closes a pull request without a merge.
func (s *Server) CloseRequest(number int, by string) error {
	return s.change(number, func(p *pull) error {
		p.state, p.by, p.ended, p.position = "CLOSED", by, s.tick(), 0
		return nil
	})
}

// Reopen opens a closed pull request again.
func (s *Server) Reopen(number int) error {
	return s.change(number, func(p *pull) error {
		if p.state != "CLOSED" {
			return fmt.Errorf("pull request %d is not closed", number)
		}
		p.state, p.by, p.ended = "OPEN", "", time.Time{}
		return nil
	})
}

// Dequeue removes a pull request from the merge queue, as GitHub does if the checks of its merge fail.
func (s *Server) Dequeue(number int) error {
	return s.change(number, func(p *pull) error { p.position = 0; return nil })
}

// Ready ends the draft state of a pull request.
func (s *Server) Ready(number int) error {
	return s.change(number, func(p *pull) error { p.draft = false; return nil })
}

// Delete deletes a pull request, as GitHub does with those of a deleted account.
func (s *Server) Delete(number int) error {
	return s.change(number, func(p *pull) error { p.gone = true; return nil })
}

// DeleteBranch deletes the branch of a pull request. GitHub also closes an open one.
func (s *Server) DeleteBranch(number int) error {
	return s.change(number, func(p *pull) error {
		if p.state == "OPEN" {
			p.state, p.ended, p.position = "CLOSED", s.tick(), 0
		}
		return s.git.delete(p.head)
	})
}

// Push adds a commit with a file to the branch of a pull request. force replaces its last commit.
func (s *Server) Push(number int, file, content string, force bool) error {
	return s.change(number, func(p *pull) error {
		if err := s.git.push(p.head, file, content, force); err != nil {
			return err
		}
		head, err := s.git.commit(p.head)
		p.last = head
		return err
	})
}

// PushBase adds a commit with a file to a branch.
func (s *Server) PushBase(branch, file, content string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.git.push(branch, file, content, false)
}

// Rename renames the repository. Requests for the former path are redirected.
func (s *Server) Rename(path string) {
	s.set(func() { s.former, s.Path = append(s.former, s.Path), path })
}

// Limit sets the points that remain, and how long until they are restored.
func (s *Server) Limit(points int, restored time.Duration) {
	s.set(func() { s.points, s.until = points, time.Now().Add(restored) })
}

// Fail gives each of the next n requests a fault: late (after 300 ms), wrong (a page instead of JSON), empty, error (status 502), die (the
// connection ends), secondary (a rate limit), denied (403), login (401).
func (s *Server) Fail(fault string, n int) {
	s.set(func() { s.faults = append(s.faults, slices.Repeat([]string{fault}, n)...) })
}

// Counts returns the number of requests by method and kind of path, such as "GET pulls" or "POST graphql", and the points used.
func (s *Server) Counts() (requests map[string]int, points int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.requests), s.total
}

// Authorized reports whether a request to a host, "127.0.0.1" or "localhost", had an Authorization header.
func (s *Server) Authorized(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tokens[name]
}

// Pull is a pull request for tests.
type Pull struct {
	Number                  int
	Title, Text, Head, Base string
	State, Commit           string
	Draft                   bool
	Comments                []string // AUTHOR: TEXT, of all kinds
	Checks                  []string // NAME CONCLUSION
}

// Pulls returns the pull requests.
func (s *Server) Pulls() []Pull {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []Pull
	for _, p := range s.pulls {
		s.follow(p)
		one := Pull{Number: p.number, Title: p.title, Text: p.body, Head: p.head, Base: p.base, State: p.state, Commit: p.commit, Draft: p.draft}
		list := slices.Concat(p.comments, p.reviews)
		for _, t := range p.threads {
			list = append(list, t.comments...)
		}
		slices.SortStableFunc(list, func(a, b *comment) int { return a.time.Compare(b.time) })
		for _, c := range list {
			one.Comments = append(one.Comments, c.by+": "+c.text)
		}
		for _, c := range s.checks[p.last] {
			one.Checks = append(one.Checks, strings.TrimSpace(c.name+" "+c.conclusion))
		}
		all = append(all, one)
	}
	return all
}
