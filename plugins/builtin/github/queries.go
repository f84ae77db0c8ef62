package github

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

const rateLimit = "\n  rateLimit { cost limit remaining resetAt }\n"

// lightFields are the fields that tell that a pull request has changed. updatedAt changes with comments and reviews, but not with
// checks, the base branch, or the merge queue.
const lightFields = `
fragment light on PullRequest {
  id number state isDraft updatedAt headRefOid baseRefName mergeable mergeStateStatus reviewDecision
  headRef { name }
  mergeQueueEntry { position }
  reviewThreads(last: 50) { totalCount nodes { isResolved } }
  statusCheckRollup {
    state
    contexts(first: 100) {
      totalCount
      nodes {
        __typename
        ... on CheckRun { id status conclusion startedAt completedAt }
        ... on StatusContext { id state createdAt }
      }
    }
  }
}`

// lightQuery returns the query for the light states of pull requests. Their aliases are p and the number.
func lightQuery(numbers []int) string {
	var b strings.Builder
	b.WriteString("query($owner: String!, $name: String!) {\n  repository(owner: $owner, name: $name) {\n    nameWithOwner\n")
	for _, n := range numbers {
		fmt.Fprintf(&b, "    p%d: pullRequest(number: %d) { ...light }\n", n, n)
	}
	b.WriteString("  }" + rateLimit + "}" + lightFields)
	return b.String()
}

// light contains the fields of a light state that the plugin reads.
type light struct {
	BaseRefName string `json:"baseRefName"`
}

// fullQuery is the query for the complete state of a pull request. Each list is left out unless its variable is set, so that
// further pages can be asked for.
const fullQuery = `
query($owner: String!, $name: String!, $number: Int!, $rest: Boolean!,
      $contexts: Boolean!, $contextsAfter: String, $comments: Boolean!, $commentsAfter: String,
      $reviews: Boolean!, $reviewsAfter: String, $threads: Boolean!, $threadsAfter: String) {
  repository(owner: $owner, name: $name) {
    pullRequest(number: $number) {
      ...light @include(if: $rest)
      ...rest @include(if: $rest)
      checks: statusCheckRollup @include(if: $contexts) {
        contexts(first: 100, after: $contextsAfter) {
          pageInfo { hasNextPage endCursor }
          nodes {
            __typename
            ... on CheckRun {
              databaseId name status conclusion title summary detailsUrl url startedAt
              isRequired(pullRequestNumber: $number)
              checkSuite { app { slug } workflowRun { event workflow { name } } }
            }
            ... on StatusContext { id context state description targetUrl createdAt isRequired(pullRequestNumber: $number) }
          }
        }
      }
      comments(first: 100, after: $commentsAfter) @include(if: $comments) {
        pageInfo { hasNextPage endCursor }
        nodes { id author { __typename login } authorAssociation viewerDidAuthor createdAt body isMinimized }
      }
      reviews(first: 100, after: $reviewsAfter) @include(if: $reviews) {
        pageInfo { hasNextPage endCursor }
        nodes { id author { __typename login } authorAssociation viewerDidAuthor submittedAt body state isMinimized }
      }
      threads: reviewThreads(first: 50, after: $threadsAfter) @include(if: $threads) {
        pageInfo { hasNextPage endCursor }
        nodes {
          id isResolved path diffSide
          comments(first: 100) {
            nodes {
              id author { __typename login } authorAssociation viewerDidAuthor createdAt body isMinimized state
              line startLine originalLine originalStartLine
              commit { oid }
              originalCommit { oid }
            }
          }
        }
      }
    }
  }` + rateLimit + `}
fragment rest on PullRequest {
  url
  mergeCommit { oid }
  mergedBy { login }
  timelineItems(last: 1, itemTypes: [CLOSED_EVENT]) { nodes { ... on ClosedEvent { actor { login } } } }
  latestOpinionatedReviews(first: 100, writersOnly: true) { nodes { state } }
  baseRef { refUpdateRule { requiredStatusCheckContexts requiredApprovingReviewCount requiresConversationResolution } }
}` + lightFields

// pull is the answer to fullQuery.
type pull struct {
	ID               string `json:"id"`
	Number           int    `json:"number"`
	State            string `json:"state"`
	IsDraft          bool   `json:"isDraft"`
	HeadRefOid       string `json:"headRefOid"`
	BaseRefName      string `json:"baseRefName"`
	Mergeable        string `json:"mergeable"`
	MergeStateStatus string `json:"mergeStateStatus"`
	ReviewDecision   string `json:"reviewDecision"`
	HeadRef          *struct {
		Name string `json:"name"`
	} `json:"headRef"`
	MergeQueueEntry *struct {
		Position int `json:"position"`
	} `json:"mergeQueueEntry"`

	URL           string  `json:"url"`
	MergeCommit   *commit `json:"mergeCommit"`
	MergedBy      *actor  `json:"mergedBy"`
	TimelineItems struct {
		Nodes []struct {
			Actor *actor `json:"actor"`
		} `json:"nodes"`
	} `json:"timelineItems"`
	LatestOpinionatedReviews struct {
		Nodes []struct {
			State string `json:"state"`
		} `json:"nodes"`
	} `json:"latestOpinionatedReviews"`
	BaseRef *struct {
		RefUpdateRule *struct {
			RequiredStatusCheckContexts    []string `json:"requiredStatusCheckContexts"`
			RequiredApprovingReviewCount   int      `json:"requiredApprovingReviewCount"`
			RequiresConversationResolution bool     `json:"requiresConversationResolution"`
		} `json:"refUpdateRule"`
	} `json:"baseRef"`

	Checks *struct {
		Contexts list[checkContext] `json:"contexts"`
	} `json:"checks"`
	Comments list[comment] `json:"comments"`
	Reviews  list[comment] `json:"reviews"`
	Threads  list[thread]  `json:"threads"`

	light json.RawMessage // its light state
}

type list[T any] struct {
	PageInfo struct {
		HasNextPage bool   `json:"hasNextPage"`
		EndCursor   string `json:"endCursor"`
	} `json:"pageInfo"`
	Nodes []T `json:"nodes"`
}

type commit struct {
	Oid string `json:"oid"`
}

type actor struct {
	Typename string `json:"__typename"`
	Login    string `json:"login"`
}

// login returns the login of an actor, or "ghost" for a deleted account, as the pages of GitHub do.
func (a *actor) login() string {
	if a == nil {
		return "ghost"
	}
	return a.Login
}

// checkContext is a check run or a commit status.
type checkContext struct {
	Typename   string `json:"__typename"`
	IsRequired bool   `json:"isRequired"`

	DatabaseID int64     `json:"databaseId"` // of a check run, also the following
	Name       string    `json:"name"`
	Status     string    `json:"status"`
	Conclusion string    `json:"conclusion"`
	Title      string    `json:"title"`
	Summary    string    `json:"summary"`
	DetailsURL string    `json:"detailsUrl"`
	URL        string    `json:"url"`
	StartedAt  time.Time `json:"startedAt"`
	CheckSuite struct {
		App *struct {
			Slug string `json:"slug"`
		} `json:"app"`
		WorkflowRun *struct {
			Event    string `json:"event"`
			Workflow struct {
				Name string `json:"name"`
			} `json:"workflow"`
		} `json:"workflowRun"`
	} `json:"checkSuite"`

	ID          string    `json:"id"` // of a commit status, also the following
	Context     string    `json:"context"`
	State       string    `json:"state"`
	Description string    `json:"description"`
	TargetURL   string    `json:"targetUrl"`
	CreatedAt   time.Time `json:"createdAt"`
}

type comment struct {
	ID                string    `json:"id"`
	Author            *actor    `json:"author"`
	AuthorAssociation string    `json:"authorAssociation"`
	ViewerDidAuthor   bool      `json:"viewerDidAuthor"`
	CreatedAt         time.Time `json:"createdAt"`
	SubmittedAt       time.Time `json:"submittedAt"` // of a review
	Body              string    `json:"body"`
	State             string    `json:"state"` // of a review, and of a comment of one
	IsMinimized       bool      `json:"isMinimized"`

	Line              int     `json:"line"` // of a comment on a line, also the following
	StartLine         int     `json:"startLine"`
	OriginalLine      int     `json:"originalLine"`
	OriginalStartLine int     `json:"originalStartLine"`
	Commit            *commit `json:"commit"`
	OriginalCommit    *commit `json:"originalCommit"`
}

type thread struct {
	ID         string        `json:"id"`
	IsResolved bool          `json:"isResolved"`
	Path       string        `json:"path"`
	DiffSide   string        `json:"diffSide"`
	Comments   list[comment] `json:"comments"`
}
