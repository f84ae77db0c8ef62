package fakeforge

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// queryRoot returns the root of queries. cost is the cost of this one.
func (s *Server) queryRoot(cost int) object {
	return object{
		"rateLimit": resolver(func(map[string]any) any {
			return object{"cost": cost, "limit": perHour, "nodeCount": 1, "remaining": s.points, "used": perHour - s.points, "resetAt": stamp(s.reset())}
		}),
		"viewer": object{"id": "U_1", "login": User, "name": "Owner"},
		"repository": resolver(func(a map[string]any) any {
			path := fmt.Sprintf("%v/%v", a["owner"], a["name"])
			if !strings.EqualFold(path, s.Path) && !slices.Contains(s.former, path) {
				return missing{fmt.Sprintf("Repository with the name '%s'.", path)}
			}
			return s.repository()
		}),
	}
}

// mutationRoot returns the root of mutations.
func (s *Server) mutationRoot() object {
	return object{
		"addPullRequestReviewThreadReply": resolver(func(a map[string]any) any {
			input, _ := a["input"].(map[string]any)
			for _, p := range s.pulls {
				for _, t := range p.threads {
					if t.id == input["pullRequestReviewThreadId"] && p.locked {
						return problem{Type: "FORBIDDEN", Message: "The conversation is locked."}
					}
					if t.id == input["pullRequestReviewThreadId"] {
						c := s.answer(t, User+":OWNER", fmt.Sprint(input["body"]))
						p.updated = c.time
						return object{"comment": s.lineComment(t, c)}
					}
				}
			}
			return missing{"node with the global id of a thread."}
		}),
		"enqueuePullRequest": resolver(func(a map[string]any) any {
			input, _ := a["input"].(map[string]any)
			for _, p := range s.pulls {
				if pullID(p) == input["pullRequestId"] && s.queue && p.state == "OPEN" && (input["expectedHeadOid"] == nil || input["expectedHeadOid"] == p.last) {
					next := 1
					for _, other := range s.pulls {
						next = max(next, other.position+1)
					}
					p.position = next
					p.updated = s.tick()
					return object{"mergeQueueEntry": object{"position": p.position}}
				}
			}
			return missing{"pull request that can be queued."}
		}),
	}
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// since returns a time, or nil.
func since(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return stamp(t)
}

func (s *Server) repository() object {
	owner, name, _ := strings.Cut(s.Path, "/")
	return object{
		"id": "R_1", "name": name, "nameWithOwner": s.Path, "hasIssuesEnabled": true, "isPrivate": true, "viewerDefaultMergeMethod": "MERGE",
		"owner":            object{"__typename": "Organization", "id": "O_1", "login": owner, "name": owner},
		"defaultBranchRef": s.ref("main"),
		"pullRequest": resolver(func(a map[string]any) any {
			p := s.pull(number(a["number"]))
			if p == nil {
				return missing{fmt.Sprintf("PullRequest with the number of %v.", a["number"])}
			}
			return s.pullObject(p)
		}),
		"pullRequests": resolver(func(a map[string]any) any {
			var all []object
			for _, p := range slices.Backward(s.pulls) {
				states, _ := a["states"].([]any)
				if !p.gone && (a["headRefName"] == nil || a["headRefName"] == p.head) && (len(states) == 0 || slices.Contains(states, any(p.state))) {
					all = append(all, s.pullObject(p))
				}
			}
			return connection(all)(a)
		}),
	}
}

// ref returns a branch, or nil.
func (s *Server) ref(name string) any {
	if _, err := s.git.commit(name); err != nil {
		return nil
	}
	return object{"id": "REF_" + name, "name": name, "refUpdateRule": nil}
}

func pullID(p *pull) string { return fmt.Sprintf("PR_%d", p.number) }

// person returns an actor, or nil.
func person(login string) any {
	if login == "" {
		return nil
	}
	if strings.HasSuffix(login, "[bot]") {
		return object{"__typename": "Bot", "id": "B_" + login, "login": strings.TrimSuffix(login, "[bot]")}
	}
	return object{"__typename": "User", "id": "U_" + login, "login": login, "name": login}
}

func (s *Server) pullObject(p *pull) object {
	s.follow(p)
	mergeable, state := s.mergeable(p)
	headOwner, _, _ := strings.Cut(p.fork, "/")
	if headOwner == "" {
		headOwner, _, _ = strings.Cut(s.Path, "/")
	}
	o := object{
		"id": pullID(p), "number": p.number, "title": p.title, "body": p.body, "state": p.state, "isDraft": p.draft, "closed": p.state != "OPEN",
		"createdAt": stamp(p.created), "updatedAt": stamp(p.updated), "url": s.page(p), "author": person(User),
		"additions": 1, "deletions": 0, "changedFiles": 1,
		"headRefOid": p.last, "headRefName": p.head, "headRef": s.ref(p.head), "baseRefName": p.base, "baseRef": s.ref(p.base),
		"headRepository": s.repository(), "headRepositoryOwner": object{"__typename": "Organization", "id": "O_2", "login": headOwner, "name": headOwner},
		"isCrossRepository": p.fork != "", "mergeable": mergeable, "mergeStateStatus": state, "reviewDecision": s.decision(p),
		"isInMergeQueue": p.position > 0, "isMergeQueueEnabled": s.queue, "mergeQueueEntry": nil,
		"mergeCommit": commitOf(p.commit), "mergedBy": nil, "mergedAt": nil, "statusCheckRollup": s.rollup(p),
		"commits":                  connection([]object{{"commit": object{"oid": p.last, "messageHeadline": p.title, "statusCheckRollup": s.rollup(p)}}}),
		"comments":                 connection(each(p.comments, s.issueComment)),
		"reviews":                  connection(each(p.reviews, s.review)),
		"latestReviews":            connection(each(p.opinions(), s.review)),
		"latestOpinionatedReviews": connection(each(p.opinions(), s.review)),
		"reviewThreads":            connection(each(p.threads, s.thread)),
		"timelineItems":            connection(nil),
	}
	switch {
	case p.state == "MERGED":
		o["mergedBy"], o["mergedAt"] = person(p.by), stamp(p.ended)
	case p.state == "CLOSED":
		o["timelineItems"] = connection([]object{{"__typename": "ClosedEvent", "actor": person(p.by), "createdAt": stamp(p.ended)}})
	case p.position > 0:
		o["mergeQueueEntry"] = object{"position": p.position}
	}
	return o
}

func commitOf(oid string) any {
	if oid == "" {
		return nil
	}
	return object{"oid": oid, "messageHeadline": "", "statusCheckRollup": nil}
}

func each[T any](list []T, view func(T) object) []object {
	var all []object
	for _, one := range list {
		all = append(all, view(one))
	}
	return all
}

// said returns the fields that all comments have.
func said(c *comment) object {
	return object{
		"id": c.id, "author": person(c.by), "authorAssociation": c.association, "body": c.text, "createdAt": stamp(c.time), "submittedAt": stamp(c.time),
		"isMinimized": false, "minimizedReason": nil, "includesCreatedEdit": false, "viewerDidAuthor": c.by == User, "url": "http://127.0.0.1/" + c.id,
		"state": c.state, "reactionGroups": []object{},
	}
}

func (s *Server) issueComment(c *comment) object { return said(c) }

func (s *Server) review(c *comment) object {
	o := said(c)
	o["commit"] = commitOf(c.commit)
	return o
}

func (s *Server) thread(t *thread) object {
	last := t.comments[0]
	return object{
		"id": t.id, "isResolved": t.resolved, "isOutdated": false, "path": t.path, "diffSide": t.side, "line": last.line,
		"comments": connection(each(t.comments, func(c *comment) object { return s.lineComment(t, c) })),
	}
}

func (s *Server) lineComment(t *thread, c *comment) object {
	o := said(c)
	o["path"], o["commit"], o["originalCommit"] = t.path, commitOf(c.commit), commitOf(c.commit)
	o["line"], o["originalLine"], o["startLine"], o["originalStartLine"] = nil, nil, nil, nil
	if c.line > 0 {
		o["line"], o["originalLine"] = c.line, c.line
	}
	if c.from > 0 {
		o["startLine"], o["originalStartLine"] = c.from, c.from
	}
	return o
}

// rollup returns the state of all checks of the head, or nil.
func (s *Server) rollup(p *pull) any {
	list := s.checks[p.last]
	if len(list) == 0 {
		return nil
	}
	state := "SUCCESS"
	for _, c := range list {
		switch {
		case c.conclusion == "":
			state = "PENDING"
		case c.conclusion != "SUCCESS" && c.conclusion != "NEUTRAL" && c.conclusion != "SKIPPED" && state != "PENDING":
			state = "FAILURE"
		}
	}
	return object{"state": state, "contexts": connection(each(list, s.checkObject))}
}

func (s *Server) checkObject(c *check) object {
	required := slices.Contains(s.required, c.name)
	if c.isStatus {
		state := c.conclusion
		if state == "" {
			state = "PENDING"
		}
		return object{
			"__typename": "StatusContext", "id": fmt.Sprintf("SC_%d", c.number), "context": c.name, "state": state, "description": strings.TrimSpace(c.log),
			"targetUrl": nil, "createdAt": stamp(c.stopped), "isRequired": required,
		}
	}
	page := fmt.Sprintf("http://%s/%s/actions/runs/1/job/%d", s.Host, s.Path, c.number)
	o := object{
		"__typename": "CheckRun", "id": fmt.Sprintf("CR_%d", c.number), "databaseId": c.number, "name": c.name, "status": c.status, "conclusion": nil,
		"title": nil, "summary": nil, "detailsUrl": page, "url": page, "startedAt": stamp(c.started), "completedAt": nil, "isRequired": required,
		"checkSuite": object{"app": object{"slug": c.app}, "workflowRun": nil},
	}
	if c.workflow != "" {
		o["checkSuite"] = object{"app": object{"slug": c.app}, "workflowRun": object{"event": "pull_request", "workflow": object{"name": c.workflow}}}
	}
	if c.status == "COMPLETED" {
		o["conclusion"], o["completedAt"] = c.conclusion, since(c.stopped)
	}
	return o
}
