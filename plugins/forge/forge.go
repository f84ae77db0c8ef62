// Package forge defines the contract of forge plugins, which use the API of a host of repositories: GitHub, GitLab, Gitea
// and others. They open pull requests (merge requests, on GitLab), report their state, and act on them.
//
// A forge plugin stores nothing and decides nothing. coven pushes the branches itself, with git, decides when to act, and
// remembers the states. A plugin may be called for several pull requests concurrently.
//
// Errors: pluginerr.ErrLogin if the host refuses the credential or there is none, fs.ErrPermission if the user may not do
// this, fs.ErrNotExist if there is no such repository or pull request, and pluginerr.ErrTransient if the same call may succeed
// later. The text of an error contains no credential.
package forge

import (
	"context"
	"time"
)

// Forge is a client of one kind of host.
type Forge interface {
	// Open opens a pull request for a branch that was pushed. If the branch has an open pull request, Open updates its
	// title, text and base instead. So it can be repeated after a crash.
	Open(ctx context.Context, request Request) (PullRequest, error)
	// Poll reports the pull requests that have changed. It covers all pull requests that coven follows in a repository, and
	// should need as few requests as possible: it is called about every half minute.
	Poll(ctx context.Context, query Query) (Report, error)
	// Log returns the last lines of the log of a check, without time stamps and terminal codes. It is at most limit bytes long. If the
	// host knows which step of the check failed, it is the log of that step. It is empty if the host has no log.
	Log(ctx context.Context, repository Repository, check Check, limit int) (string, error)
	// Rerun runs a completed check again on the same commit. A plugin of a host that cannot do this returns
	// pluginerr.ErrUnsupported.
	Rerun(ctx context.Context, repository Repository, check Check) error
	// Reply answers a comment of a pull request.
	Reply(ctx context.Context, repository Repository, reply Reply) error
	// Merge merges a pull request if its head is still the given commit. It returns the commit on the base branch. If the host
	// queues the merge, the commit is empty.
	Merge(ctx context.Context, repository Repository, merge Merge) (commit string, err error)
}

// Repository is a repository of a host.
type Repository struct {
	API  string `json:"api,omitempty"` // address of the API: https://git.example.com/api/v3; empty for the usual one of Host
	Host string `json:"host"`          // github.com
	Path string `json:"path"`          // owner/name, or with more groups on GitLab
}

// Request describes a pull request to open.
type Request struct {
	Repository Repository
	Head       string // branch that was pushed
	HeadPath   string // path of the repository of Head if it is a fork, otherwise empty
	Base       string // branch to merge into
	Title      string
	Text       string // Markdown
	Draft      bool   // only for a new one
}

// Query asks for the pull requests that have changed.
type Query struct {
	Repository Repository
	Known      []Known // at most 1,000
	// Version is the one of the last Report that coven has stored. It is empty in the first query.
	Version string
}

// Known is a pull request whose state coven has stored.
type Known struct {
	Number  int
	Version string // of the stored PullRequest; empty if there is none
}

// Report answers a Query.
type Report struct {
	// Changed contains the complete states of the pull requests whose state is not the known one. A pull request that no
	// longer exists has the state Gone.
	Changed []PullRequest
	// Version identifies the whole state, for conditional requests. coven passes it in the next query, unless it could not
	// store this report. It is at most 16 KiB long.
	Version string
	// Moved is the present path of the repository if it was renamed, otherwise empty.
	Moved string
	Limit Limit
}

// Limit is the rate limit of the user's account on the host, as far as the host tells. The zero value means unknown.
type Limit struct {
	Total     int       // points or requests for each period
	Remaining int       // for the rest of the period
	Reset     time.Time // end of the period
	Cost      int       // of this call
	// Until is set if the host refused the call because of the limit. Then the report is empty.
	Until time.Time
}

// State is the state of a pull request.
type State string

// The states.
const (
	Open   State = "open"
	Queued State = "queued" // open, and in the merge queue
	Merged State = "merged"
	Closed State = "closed" // without a merge
	Gone   State = "gone"   // deleted
)

// Mergeable is the reason for which an open pull request can or cannot be merged.
type Mergeable string

// The reasons.
const (
	Unknown  Mergeable = ""         // not known yet
	Clean    Mergeable = "clean"    // it can be merged now
	Behind   Mergeable = "behind"   // the base branch requires that its tip is merged first
	Conflict Mergeable = "conflict" // it conflicts with the base branch
	Blocked  Mergeable = "blocked"  // a rule of the base branch is not fulfilled yet: a review or a check
)

// PullRequest is the state of a pull request.
type PullRequest struct {
	Version   string    `json:"version"` // identifies this state, for Known; at most 1 KiB
	Number    int       `json:"number"`
	URL       string    `json:"url"` // of its page
	State     State     `json:"state"`
	Draft     bool      `json:"draft,omitempty"`
	Head      string    `json:"head"`                // commit of its branch
	HeadGone  bool      `json:"head_gone,omitempty"` // its branch was deleted
	Base      string    `json:"base"`                // branch
	Mergeable Mergeable `json:"mergeable,omitempty"`
	Queue     int       `json:"queue,omitempty"`   // its position in the merge queue, from 1; 0 if unknown
	Commit    string    `json:"commit,omitempty"`  // on the base branch, if it is Merged
	By        string    `json:"by,omitempty"`      // login of the person who merged or closed it
	Changes   bool      `json:"changes,omitempty"` // a reviewer requests changes
	Needs     string    `json:"needs,omitempty"`   // missing for the merge, besides checks, in a few words: 1 more approval
	// Checks are those of Head. A required check that has not reported is Pending.
	Checks   []Check   `json:"checks,omitempty"`
	Comments []Comment `json:"comments,omitempty"` // of people, oldest first; the texts of reviews without a line are comments, too
}

// Check is a check that the host or a CI ran for a commit.
type Check struct {
	ID       string `json:"id"`   // of this run, for Log and Rerun; empty if it has not reported
	Name     string `json:"name"` // unique in a pull request
	Status   Status `json:"status"`
	Required bool   `json:"required,omitempty"` // by the rules of the base branch
	URL      string `json:"url,omitempty"`      // of its page
	Summary  string `json:"summary,omitempty"`  // of the result, one line
}

// Status is the status of a check.
type Status string

// The statuses. A skipped or neutral check has passed. A cancelled check, or one that timed out or waits for a person's permission, has Failed.
const (
	Pending Status = "pending"
	Passed  Status = "passed"
	Failed  Status = "failed"
)

// Comment is a comment of a person on a pull request.
type Comment struct {
	ID      string    `json:"id"`                // for Reply
	By      string    `json:"by"`                // login of the author
	Trusted bool      `json:"trusted,omitempty"` // the author may write to the repository
	Own     bool      `json:"own,omitempty"`     // the author is the user of the credential: a person, or coven
	Time    time.Time `json:"time"`
	Text    string    `json:"text"` // Markdown
	// Path, Line and Old tell the place: a line of Commit, or with Old a removed line of the base. Path is empty for a
	// comment on the whole change, and Line is 0 for one on a file. From is the first line if there are several, otherwise 0.
	Path     string `json:"path,omitempty"`
	From     int    `json:"from,omitempty"`
	Line     int    `json:"line,omitempty"`
	Old      bool   `json:"old,omitempty"`
	Commit   string `json:"commit,omitempty"`
	Resolved bool   `json:"resolved,omitempty"`
	Answers  string `json:"answers,omitempty"` // ID of the comment to which it is an answer; empty for the first of a thread
}

// Reply is an answer to a comment.
type Reply struct {
	Number  int
	Comment string // its ID
	Text    string // Markdown
}

// Merge is a request to merge.
type Merge struct {
	Number int
	Head   string // commit that the person or coven has checked
	Method string // squash, merge or rebase; empty for the host's default
}
