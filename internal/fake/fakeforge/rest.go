package fakeforge

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// handler returns the handler of all requests. A program that uses the server as its proxy for api.github.localhost reaches the same API.
func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	rest := func(pattern string, answer func(w http.ResponseWriter, r *http.Request)) {
		method, path, _ := strings.Cut(pattern, " ")
		mux.HandleFunc(method+" /repos/{owner}/{name}"+path, s.moved(s.counted(pattern, answer)))
		mux.HandleFunc(method+" /repositories/1"+path, s.counted(pattern, answer))
	}
	mux.HandleFunc("POST /graphql", s.graphQL)
	rest("GET /pulls", s.listPulls)
	rest("POST /pulls", s.openPull)
	rest("PATCH /pulls/{number}", s.updatePull)
	rest("PUT /pulls/{number}/merge", s.mergePull)
	rest("POST /issues/{number}/comments", s.addComment)
	rest("GET /rules/branches/{branch}", s.rules)
	rest("GET /actions/jobs/{id}", s.job)
	rest("GET /actions/jobs/{id}/logs", s.logLink)
	rest("POST /actions/jobs/{id}/rerun", s.rerun)
	rest("GET /check-runs/{id}", s.checkRun)
	rest("POST /check-runs/{id}/rerequest", s.rerun)
	mux.HandleFunc("GET /logs/{id}", s.log)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		name, _, _ := strings.Cut(r.Host, ":")
		s.tokens[name] = s.tokens[name] || r.Header.Get("Authorization") != ""
		fault := ""
		if len(s.faults) > 0 {
			fault, s.faults = s.faults[0], s.faults[1:]
		}
		kind, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/api/v3/repos/"+s.Path+"/"), "/")
		if strings.HasSuffix(r.URL.Path, "/graphql") {
			kind = "graphql"
		}
		s.requests[r.Method+" "+kind]++
		s.mu.Unlock()
		if s.faulty(w, r, fault) {
			return
		}
		if r.Header.Get("Authorization") == "" && !strings.HasPrefix(r.URL.Path, "/logs/") {
			refuse(w, http.StatusUnauthorized, "Requires authentication")
			return
		}
		for _, prefix := range []string{"/api/v3", "/api"} {
			if rest, ok := strings.CutPrefix(r.URL.EscapedPath(), prefix+"/"); ok {
				r.URL.Path, r.URL.RawPath = strings.TrimPrefix(r.URL.Path, prefix), "/"+rest
				break
			}
		}
		mux.ServeHTTP(w, r)
	})
}

// faulty answers a request that has a fault.
func (s *Server) faulty(w http.ResponseWriter, r *http.Request, fault string) bool {
	switch fault {
	case "":
		return false
	case "late":
		select {
		case <-time.After(300 * time.Millisecond):
		case <-r.Context().Done():
		}
		return false
	case "wrong":
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte("<html><body>Sign in to the network</body></html>"))
	case "empty":
		reply(w, http.StatusOK, map[string]any{})
	case "error":
		refuse(w, http.StatusBadGateway, "Bad gateway")
	case "secondary":
		w.Header().Set("Retry-After", "60")
		refuse(w, http.StatusForbidden, "You have exceeded a secondary rate limit. Please wait a few minutes before you try again.")
	case "denied":
		refuse(w, http.StatusForbidden, "Resource not accessible by personal access token")
	case "login":
		refuse(w, http.StatusUnauthorized, "Bad credentials")
	default: // die
		panic(http.ErrAbortHandler)
	}
	return true
}

// moved redirects requests for a former path of the repository.
func (s *Server) moved(answer http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		path := r.PathValue("owner") + "/" + r.PathValue("name")
		s.mu.Lock()
		known, former := strings.EqualFold(path, s.Path), slices.Contains(s.former, path)
		s.mu.Unlock()
		switch {
		case known:
			answer(w, r)
		case former:
			_, rest, _ := strings.Cut(r.URL.EscapedPath(), path)
			status := http.StatusTemporaryRedirect
			if r.Method == http.MethodGet {
				status = http.StatusMovedPermanently
			}
			w.Header().Set("Location", s.API+"/repositories/1"+rest+"?"+r.URL.RawQuery)
			w.WriteHeader(status)
		default:
			refuse(w, http.StatusNotFound, "Not Found")
		}
	}
}

// counted answers while the server is locked, if the rate limit allows it. An answer that the caller knows does not count.
func (s *Server) counted(pattern string, answer http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, p := range s.pulls {
			s.follow(p)
		}
		if !strings.HasPrefix(pattern, "GET /rules") && !s.spend(1) {
			s.limitHeader(w)
			refuse(w, http.StatusForbidden, "API rate limit exceeded for user ID 1.")
			return
		}
		s.limitHeader(w)
		answer(w, r)
	}
}

// spend uses points. It reports whether there are enough.
func (s *Server) spend(points int) bool {
	if !s.until.IsZero() && time.Now().After(s.until) {
		s.points, s.until = perHour, time.Time{}
	}
	if s.points < points {
		return false
	}
	s.points -= points
	s.total += points
	return true
}

// reset returns the end of the period of the rate limit.
func (s *Server) reset() time.Time {
	if s.until.IsZero() {
		return time.Now().Add(time.Hour)
	}
	return s.until
}

func (s *Server) limitHeader(w http.ResponseWriter) {
	w.Header().Set("X-Ratelimit-Limit", strconv.Itoa(perHour))
	w.Header().Set("X-Ratelimit-Remaining", strconv.Itoa(s.points))
	w.Header().Set("X-Ratelimit-Reset", strconv.FormatInt(s.reset().Unix(), 10))
}

func reply(w http.ResponseWriter, status int, value any) {
	text, err := json.Marshal(value)
	if err != nil {
		status, text = http.StatusInternalServerError, []byte(fmt.Sprintf("%q", err))
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(text)
}

func refuse(w http.ResponseWriter, status int, message string) {
	reply(w, status, map[string]any{"message": message, "documentation_url": "https://docs.github.com/rest"})
}

// asked returns the pull request of a request.
func (s *Server) asked(w http.ResponseWriter, r *http.Request) *pull {
	number, _ := strconv.Atoi(r.PathValue("number"))
	p := s.pull(number)
	if p == nil {
		refuse(w, http.StatusNotFound, "Not Found")
	}
	return p
}

// pullJSON returns a pull request as the REST API does.
func (s *Server) pullJSON(p *pull) map[string]any {
	head := p.fork
	if head == "" {
		head = s.Path
	}
	return map[string]any{
		"number": p.number, "html_url": s.page(p), "title": p.title, "body": p.body, "draft": p.draft, "state": strings.ToLower(strings.Replace(p.state, "MERGED", "CLOSED", 1)),
		"head": map[string]any{"sha": p.last, "ref": p.head, "repo": map[string]any{"full_name": head}},
		"base": map[string]any{"ref": p.base, "repo": map[string]any{"full_name": s.Path}},
	}
}

// page returns the address of the page of a pull request.
func (s *Server) page(p *pull) string {
	return fmt.Sprintf("http://%s/%s/pull/%d", s.Host, s.Path, p.number)
}

func (s *Server) listPulls(w http.ResponseWriter, r *http.Request) {
	list := []any{}
	owner, branch, _ := strings.Cut(r.FormValue("head"), ":")
	for _, p := range s.pulls {
		from := p.fork
		if from == "" {
			from = s.Path
		}
		if !p.gone && (branch == "" || p.head == branch && strings.HasPrefix(from, owner+"/")) && (r.FormValue("state") != "open" || p.state == "OPEN") {
			list = append(list, s.pullJSON(p))
		}
	}
	reply(w, http.StatusOK, list)
}

func (s *Server) openPull(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Title, Head, Base, Body string
		Draft                   bool
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		refuse(w, http.StatusBadRequest, "Problems parsing JSON")
		return
	}
	fork := ""
	if owner, branch, found := strings.Cut(body.Head, ":"); found {
		body.Head = branch
		if mine, name, _ := strings.Cut(s.Path, "/"); owner != mine {
			fork = owner + "/" + name
		}
	}
	head, err := s.git.commit(body.Head)
	_, noBase := s.git.commit(body.Base)
	base, _ := s.git.commit(body.Base)
	switch {
	case err != nil:
		invalid(w, map[string]string{"resource": "PullRequest", "field": "head", "code": "invalid"})
	case noBase != nil:
		invalid(w, map[string]string{"resource": "PullRequest", "field": "base", "code": "invalid"})
	case s.git.contains(base, head):
		invalid(w, map[string]string{"message": fmt.Sprintf("No commits between %s and %s", body.Base, body.Head)})
	case slices.ContainsFunc(s.pulls, func(p *pull) bool { return p.head == body.Head && p.fork == fork && p.state == "OPEN" && !p.gone }):
		invalid(w, map[string]string{"message": "A pull request already exists for " + body.Head + "."})
	default:
		p := s.open(&pull{title: body.Title, body: body.Body, head: body.Head, base: body.Base, fork: fork, draft: body.Draft, last: head})
		reply(w, http.StatusCreated, s.pullJSON(p))
	}
}

func invalid(w http.ResponseWriter, detail map[string]string) {
	reply(w, http.StatusUnprocessableEntity, map[string]any{"message": "Validation Failed", "errors": []any{detail}})
}

func (s *Server) updatePull(w http.ResponseWriter, r *http.Request) {
	p := s.asked(w, r)
	if p == nil {
		return
	}
	var body struct{ Title, Body, Base *string }
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		refuse(w, http.StatusBadRequest, "Problems parsing JSON")
		return
	}
	for field, value := range map[*string]*string{&p.title: body.Title, &p.body: body.Body, &p.base: body.Base} {
		if value != nil {
			*field = *value
		}
	}
	p.updated = s.tick()
	reply(w, http.StatusOK, s.pullJSON(p))
}

func (s *Server) mergePull(w http.ResponseWriter, r *http.Request) {
	p := s.asked(w, r)
	if p == nil {
		return
	}
	var body struct {
		SHA    string
		Method string `json:"merge_method"`
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		refuse(w, http.StatusBadRequest, "Problems parsing JSON")
		return
	}
	_, state := s.mergeable(p)
	switch {
	case p.state != "OPEN" || state == "DIRTY" || p.draft:
		refuse(w, http.StatusMethodNotAllowed, "Pull Request is not mergeable")
	case body.SHA != p.last:
		refuse(w, http.StatusConflict, "Head branch was modified. Review and try the merge again.")
	case s.queue:
		refuse(w, http.StatusMethodNotAllowed, "Changes must be made through the merge queue")
	case state == "BLOCKED":
		refuse(w, http.StatusMethodNotAllowed, "Required status check is expected.")
	default:
		if err := s.merge(p, User, body.Method); err != nil {
			refuse(w, http.StatusMethodNotAllowed, err.Error())
			return
		}
		p.updated = s.tick()
		reply(w, http.StatusOK, map[string]any{"sha": p.commit, "merged": true, "message": "Pull Request successfully merged"})
	}
}

func (s *Server) addComment(w http.ResponseWriter, r *http.Request) {
	p := s.asked(w, r)
	if p == nil {
		return
	}
	if p.locked {
		refuse(w, http.StatusForbidden, "Unable to create comment because issue is locked.")
		return
	}
	var body struct{ Body string }
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil || body.Body == "" {
		refuse(w, http.StatusUnprocessableEntity, "Validation Failed")
		return
	}
	c := s.newComment("IC", User+":OWNER", body.Body)
	p.comments, p.updated = append(p.comments, c), c.time
	reply(w, http.StatusCreated, map[string]any{"id": s.id(), "node_id": c.id, "body": c.text})
}

// rules answers with the rules of a branch, and with 304 if the caller knows them.
func (s *Server) rules(w http.ResponseWriter, r *http.Request) {
	list := []any{}
	if len(s.required) > 0 {
		var checks []any
		for _, name := range s.required {
			checks = append(checks, map[string]any{"context": name})
		}
		list = append(list, map[string]any{"type": "required_status_checks", "parameters": map[string]any{"required_status_checks": checks}})
	}
	if s.reviews > 0 {
		list = append(list, map[string]any{"type": "pull_request", "parameters": map[string]any{"required_approving_review_count": s.reviews}})
	}
	if s.queue {
		list = append(list, map[string]any{"type": "merge_queue"})
	}
	text, _ := json.Marshal(list)
	tag := fmt.Sprintf(`W/"%x"`, sha256.Sum256(text))
	w.Header().Set("Etag", tag)
	if r.Header.Get("If-None-Match") == tag {
		s.requests["304"]++
		w.WriteHeader(http.StatusNotModified)
		return
	}
	if !s.spend(1) {
		refuse(w, http.StatusForbidden, "API rate limit exceeded for user ID 1.")
		return
	}
	reply(w, http.StatusOK, list)
}

// mergeable returns the values of mergeable and mergeStateStatus.
func (s *Server) mergeable(p *pull) (mergeable, state string) {
	base, err := s.git.commit(p.base)
	switch {
	case p.state != "OPEN" || err != nil:
		return "UNKNOWN", "UNKNOWN"
	case s.git.merged(base, p.last) == "":
		return "CONFLICTING", "DIRTY"
	case p.draft:
		return "MERGEABLE", "DRAFT"
	}
	for _, name := range s.required {
		if !slices.ContainsFunc(s.checks[p.last], func(c *check) bool { return c.name == name && c.conclusion == "SUCCESS" }) {
			return "MERGEABLE", "BLOCKED"
		}
	}
	if decision := s.decision(p); decision != nil && decision != "APPROVED" {
		return "MERGEABLE", "BLOCKED"
	}
	if slices.ContainsFunc(s.checks[p.last], func(c *check) bool { return c.conclusion != "SUCCESS" }) {
		return "MERGEABLE", "UNSTABLE"
	}
	return "MERGEABLE", "CLEAN"
}

// opinions returns the latest review of each person that approves or requests changes.
func (p *pull) opinions() []*comment {
	last := map[string]*comment{}
	for _, r := range p.reviews {
		if r.state == "APPROVED" || r.state == "CHANGES_REQUESTED" {
			last[r.by] = r
		}
	}
	var all []*comment
	for _, r := range p.reviews {
		if last[r.by] == r {
			all = append(all, r)
		}
	}
	return all
}

// decision returns the value of reviewDecision.
func (s *Server) decision(p *pull) any {
	approvals := 0
	for _, r := range p.opinions() {
		if r.state == "CHANGES_REQUESTED" {
			return "CHANGES_REQUESTED"
		}
		approvals++
	}
	switch {
	case approvals < s.reviews:
		return "REVIEW_REQUIRED"
	case s.reviews > 0:
		return "APPROVED"
	}
	return nil
}
