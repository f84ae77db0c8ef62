package forge

import (
	"encoding/hex"
	"fmt"
	"net/url"
	"path"
	"strings"
	"time"
	"unicode"

	"github.com/coven-run/coven/plugins/pluginerr"
)

// The limits of the answers of a plugin, in bytes or elements. A whole answer must not exceed 32 MiB.
const (
	MaxAnswer   = 32 << 20
	MaxKnown    = 1000     // pull requests of a query
	MaxChecks   = 1000     // of a pull request
	MaxComments = 1000     // of a pull request
	MaxText     = 64 << 10 // of a comment
	MaxLine     = 1 << 10  // of a name, a summary, an ID, an address, a path or the version of a pull request
	MaxVersion  = 16 << 10 // of a report
)

// ClipText returns the text as valid UTF-8, cut to MaxText bytes.
func ClipText(text string) string { return clip(text, MaxText) }

// ClipLine returns the text in one line without control characters, cut to MaxLine bytes.
func ClipLine(text string) string {
	return clip(strings.Join(strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || !printable(r) }), " "), MaxLine)
}

func clip(text string, limit int) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) > limit {
		return strings.ToValidUTF8(text[:limit-3], "") + "..."
	}
	return text
}

// printable reports whether r is neither a control character nor invisible.
func printable(r rune) bool { return unicode.IsGraphic(r) }

// Validate returns a pluginerr.ErrInvalid for the first violation of the contract in the answer to a query.
func (r Report) Validate(q Query) error {
	known := map[int]bool{}
	for _, k := range q.Known {
		known[k.Number] = true
	}
	switch {
	case len(r.Version) > MaxVersion:
		return invalid("version of %d bytes, the limit is %d", len(r.Version), MaxVersion)
	case r.Moved != "" && !isPath(r.Moved):
		return invalid("path %s of the repository", quoted(r.Moved))
	case !r.Limit.Until.IsZero() && len(r.Changed) > 0:
		return invalid("pull requests, although the host refused the call")
	}
	for _, n := range []int{r.Limit.Total, r.Limit.Remaining, r.Limit.Cost} {
		if n < 0 {
			return invalid("rate limit of %d", n)
		}
	}
	for _, pull := range r.Changed {
		if !known[pull.Number] {
			return invalid("pull request %d, which was not asked for, or which is reported twice", pull.Number)
		}
		delete(known, pull.Number)
		if err := pull.Validate(); err != nil {
			return err
		}
	}
	return nil
}

// Validate returns a pluginerr.ErrInvalid for the first violation of the contract.
func (p PullRequest) Validate() error {
	wrong := p.wrong()
	for i := 0; wrong == "" && i < len(p.Comments); i++ {
		if wrong = p.Comments[i].wrong(); wrong != "" {
			wrong = fmt.Sprintf("comment %d: %s", i+1, wrong)
		}
	}
	names := map[string]bool{}
	for i := 0; wrong == "" && i < len(p.Checks); i++ {
		check := p.Checks[i]
		if wrong = check.wrong(); wrong == "" && names[check.Name] {
			wrong = "a second check has the name " + quoted(check.Name)
		} else if wrong != "" {
			wrong = fmt.Sprintf("check %d: %s", i+1, wrong)
		}
		names[check.Name] = true
	}
	if wrong != "" {
		return invalid("pull request %d: %s", p.Number, wrong)
	}
	return nil
}

// wrong describes the first violation of the contract, or returns "".
func (p PullRequest) wrong() string {
	switch {
	case p.Number <= 0:
		return "its number is not positive"
	case !isState(p.State):
		return "unknown state " + quoted(string(p.State))
	case !isMergeable(p.Mergeable):
		return "unknown value of mergeable " + quoted(string(p.Mergeable))
	case len(p.Checks) > MaxChecks || len(p.Comments) > MaxComments:
		return fmt.Sprintf("%d checks and %d comments, the limits are %d and %d", len(p.Checks), len(p.Comments), MaxChecks, MaxComments)
	case p.State != Gone && !isCommit(p.Head), p.Commit != "" && !isCommit(p.Commit):
		return "a commit that is no object ID"
	case p.State != Gone && (!isURL(p.URL) || p.URL == ""):
		return "address " + quoted(p.URL)
	case p.State != Gone && !isRef(p.Base):
		return "base " + quoted(p.Base)
	case p.Queue < 0:
		return fmt.Sprintf("position %d in the merge queue", p.Queue)
	}
	return notLine(p.Version, p.By, p.Needs)
}

// wrong describes the first violation of the contract, or returns "".
func (c Check) wrong() string {
	switch {
	case c.Name == "":
		return "no name"
	case c.Status != Pending && c.Status != Passed && c.Status != Failed:
		return "unknown status " + quoted(string(c.Status))
	case c.ID == "" && c.Status != Pending:
		return "it has a result, but no ID"
	case !isURL(c.URL):
		return "address " + quoted(c.URL)
	}
	return notLine(c.ID, c.Name, c.Summary)
}

// wrong describes the first violation of the contract, or returns "".
func (c Comment) wrong() string {
	switch {
	case c.ID == "":
		return "no ID"
	case len(c.Text) > MaxText:
		return fmt.Sprintf("text of %d bytes, the limit is %d", len(c.Text), MaxText)
	case c.Path == "" && (c.Line != 0 || c.From != 0):
		return "a line without a file"
	case c.Path != "" && !inside(c.Path):
		return "file " + quoted(c.Path) + " is not a path inside the repository"
	case c.Line < 0 || c.From < 0 || c.From > c.Line:
		return fmt.Sprintf("lines %d to %d", c.From, c.Line)
	case c.Commit != "" && !isCommit(c.Commit):
		return "a commit that is no object ID"
	case !c.Time.IsZero() && (c.Time.Year() < 1970 || c.Time.After(time.Now().AddDate(1, 0, 0))):
		return "its time is impossible"
	}
	return notLine(c.ID, c.By, c.Path, c.Answers)
}

// ValidateCommit returns a pluginerr.ErrInvalid unless the commit of Forge.Merge is empty or an object ID.
func ValidateCommit(commit string) error {
	if commit != "" && !isCommit(commit) {
		return invalid("commit %s", quoted(commit))
	}
	return nil
}

func isState(s State) bool {
	return s == Open || s == Queued || s == Merged || s == Closed || s == Gone
}

func isMergeable(m Mergeable) bool {
	return m == Unknown || m == Clean || m == Behind || m == Conflict || m == Blocked
}

// isCommit reports whether the text is an object ID of git, of SHA-1 or SHA-256.
func isCommit(text string) bool {
	_, err := hex.DecodeString(text)
	return err == nil && (len(text) == 40 || len(text) == 64) && strings.ToLower(text) == text
}

// isURL reports whether the text is empty or the address of a page.
func isURL(text string) bool {
	if text == "" {
		return true
	}
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != "" && u.User == nil && notLine(text) == ""
}

// isRef reports whether the text may be the name of a branch. git has more rules.
func isRef(text string) bool {
	return text != "" && notLine(text) == "" && !strings.ContainsAny(text, " ~^:?*[\\") && !strings.HasPrefix(text, "-") && !strings.Contains(text, "..")
}

// isPath reports whether the text is the path of a repository on a host.
func isPath(text string) bool {
	return inside(text) && strings.Contains(text, "/") && !strings.ContainsAny(text, " ?#%\\")
}

// inside reports whether a path is relative, clean and inside a directory.
func inside(file string) bool {
	return !path.IsAbs(file) && path.Clean(file) == file && file != "." && file != ".." && !strings.HasPrefix(file, "../") && notLine(file) == ""
}

// notLine describes the first text that is too long or has control characters, or returns "".
func notLine(texts ...string) string {
	for _, text := range texts {
		if len(text) > MaxLine {
			return fmt.Sprintf("a text of %d bytes, the limit is %d", len(text), MaxLine)
		}
		if strings.ContainsFunc(text, unicode.IsControl) {
			return "control characters in " + quoted(text)
		}
	}
	return ""
}

// maxQuoted is the number of bytes that are quoted from an invalid value.
const maxQuoted = 80

func quoted(text string) string {
	if len(text) > maxQuoted {
		text = text[:maxQuoted] + "..."
	}
	return fmt.Sprintf("%q", text)
}

func invalid(format string, args ...any) error {
	return fmt.Errorf(format+": %w", append(args, pluginerr.ErrInvalid)...)
}
