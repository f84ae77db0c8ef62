package fakeforge

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// numbered returns the check of a request.
func (s *Server) numbered(r *http.Request) (c *check, commit string) {
	for commit, list := range s.checks {
		for _, c := range list {
			if strconv.Itoa(c.number) == r.PathValue("id") {
				return c, commit
			}
		}
	}
	return nil, ""
}

// logOf returns a log of GitHub Actions, with times, and its steps.
func logOf(c *check) (log string, steps []any) {
	at := c.started
	var b strings.Builder
	b.WriteString("\ufeff")
	line := func(text string) {
		fmt.Fprintf(&b, "%s %s\n", at.Format("2006-01-02T15:04:05.0000000Z"), text)
	}
	line("Current runner version: '2.999.0'")
	name, begun := "Set up job", at
	end := func(conclusion string) {
		steps = append(steps, map[string]any{
			"name": name, "status": "completed", "conclusion": conclusion, "number": len(steps) + 1,
			"started_at": begun.Format(time.RFC3339), "completed_at": at.Format(time.RFC3339),
		})
	}
	for text := range strings.Lines(c.log) {
		text = strings.TrimSuffix(text, "\n")
		next, begins := strings.CutPrefix(text, "@ ")
		if !begins {
			line(text)
			continue
		}
		end("success")
		at = at.Add(700 * time.Millisecond) // steps share seconds
		name, begun = next, at
		line("##[group]Run " + next)
		line("\x1b[36;1m" + next + "\x1b[0m")
		line("##[endgroup]")
	}
	if c.conclusion == "FAILURE" {
		line("##[error]Process completed with exit code 1.")
		end("failure")
	} else {
		end("success")
	}
	at = at.Add(200 * time.Millisecond)
	name, begun = "Post checkout", at
	line("Post job cleanup.")
	line("[command]/usr/bin/git version")
	end("success")
	return b.String(), steps
}

func (s *Server) job(w http.ResponseWriter, r *http.Request) {
	c, _ := s.numbered(r)
	if c == nil || c.app != "github-actions" {
		refuse(w, http.StatusNotFound, "Not Found")
		return
	}
	_, steps := logOf(c)
	reply(w, http.StatusOK, map[string]any{"id": c.number, "name": c.name, "status": strings.ToLower(c.status), "conclusion": strings.ToLower(c.conclusion), "steps": steps})
}

// logLink redirects to another host, as GitHub does.
func (s *Server) logLink(w http.ResponseWriter, r *http.Request) {
	c, _ := s.numbered(r)
	if c == nil || c.log == "" {
		refuse(w, http.StatusNotFound, "Not Found")
		return
	}
	_, port, _ := strings.Cut(s.Host, ":")
	w.Header().Set("Location", fmt.Sprintf("http://localhost:%s/logs/%d", port, c.number))
	w.WriteHeader(http.StatusFound)
}

func (s *Server) log(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, _ := s.numbered(r)
	if c == nil {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	text, _ := logOf(c)
	_, _ = w.Write([]byte(text))
}

func (s *Server) rerun(w http.ResponseWriter, r *http.Request) {
	c, commit := s.numbered(r)
	switch {
	case c == nil:
		refuse(w, http.StatusNotFound, "Not Found")
	case c.status != "COMPLETED":
		refuse(w, http.StatusForbidden, "The workflow run containing this job is already running")
	default:
		name := c.name
		if c.app != "github-actions" {
			name = c.app + ":" + name
		}
		s.setCheck(commit, name, "pending", "")
		reply(w, http.StatusCreated, map[string]any{})
	}
}

func (s *Server) checkRun(w http.ResponseWriter, r *http.Request) {
	c, _ := s.numbered(r)
	if c == nil {
		refuse(w, http.StatusNotFound, "Not Found")
		return
	}
	reply(w, http.StatusOK, map[string]any{"id": c.number, "name": c.name, "output": map[string]any{"title": "Result of " + c.name, "summary": c.summary, "text": c.log}})
}
