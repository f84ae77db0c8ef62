package event

import "strings"

// PullRequest is the data of PullPublished.
type PullRequest struct {
	Number int    `json:"number"`
	URL    string `json:"url"`
	Target string `json:"target"` // ref of the base branch in this repository: refs/remotes/origin/main
	Remote string `json:"remote"` // name of the remote that has the branch
	Branch string `json:"branch"`
	Base   string `json:"base"` // branch on the host
	Tip    string `json:"tip"`  // commit that was pushed
	Tree   string `json:"tree"` // its tree, on which the checks passed
	Old    string `json:"old"`  // tip of the base that Tip contains
}

// TrackingRef returns the remote-tracking ref of its branch.
func (p PullRequest) TrackingRef() string { return "refs/remotes/" + p.Remote + "/" + p.Branch }

// InBaseRepository reports whether its branch is in the repository of its base, and not in a fork.
func (p PullRequest) InBaseRepository() bool {
	return strings.HasPrefix(p.Target, "refs/remotes/"+p.Remote+"/")
}

// PullState is the data of PullSeen.
type PullState struct {
	State  string      `json:"state"`            // open, queued, merged, closed or gone
	Head   string      `json:"head"`             // commit
	Detail string      `json:"detail,omitempty"` // one line
	Checks []PullCheck `json:"checks,omitempty"`
}

// PullCheck is a check on the host. It is also the data of PullRerun.
type PullCheck struct {
	ID     string `json:"id,omitempty"` // of this run of the check, on the host
	Name   string `json:"name"`
	Head   string `json:"head"`   // commit
	Status string `json:"status"` // pending, passed or failed
}

// PullAnswer is the data of PullAnswered. coven does not repeat an answer that the host has refused.
type PullAnswer struct {
	Comment string `json:"comment"` // its ID on the host
	Text    string `json:"text"`
	Refused string `json:"refused,omitempty"` // reason for which the host does not accept it
}

// PullTarget is the data of PullMoved.
type PullTarget struct {
	Target string `json:"target"` // ref of the new base branch in this repository
}
