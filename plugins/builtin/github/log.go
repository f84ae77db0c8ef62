package github

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/coven-run/coven/internal/text/lazyregexp"
	"github.com/coven-run/coven/plugins/builtin/forgehttp"
	"github.com/coven-run/coven/plugins/forge"
	"github.com/coven-run/coven/plugins/pluginerr"
)

// Log implements forge.Forge.
func (f Forge) Log(ctx context.Context, where forge.Repository, check forge.Check, limit int) (string, error) {
	r, err := f.open(where)
	if err != nil {
		return "", err
	}
	kind, id, _ := strings.Cut(check.ID, ":")
	switch kind {
	case actionsJob:
		return r.jobLog(ctx, id, limit)
	case checkRun:
		return r.runLog(ctx, id, limit)
	case oldStatus:
		return forgehttp.Tail(check.Summary, limit), nil
	}
	return "", unknownID(check.ID)
}

// runLog returns the text of a check run that is not of GitHub Actions.
func (r *repository) runLog(ctx context.Context, id string, limit int) (string, error) {
	var run struct {
		Output struct{ Title, Summary, Text string } `json:"output"`
	}
	if _, err := r.JSON(ctx, forgehttp.Call{Path: r.path("check-runs", id)}, &run); err != nil {
		return "", err
	}
	var parts []string
	for _, part := range []string{run.Output.Title, run.Output.Summary, run.Output.Text} {
		if part = strings.TrimSpace(forgehttp.Clean(part)); part != "" {
			parts = append(parts, part)
		}
	}
	return forgehttp.Tail(strings.Join(parts, "\n\n"), limit), nil
}

// step is a step of a job.
type step struct {
	Name        string    `json:"name"`
	Conclusion  string    `json:"conclusion"`
	StartedAt   time.Time `json:"started_at"`
	CompletedAt time.Time `json:"completed_at"`
}

const (
	maxLog  = 256 << 20       // bytes that are read of a log
	maxWait = 5 * time.Minute // for a log
)

// jobLog returns the log of the failed step of a job of GitHub Actions. If no step failed, it is the log of the job.
func (r *repository) jobLog(ctx context.Context, id string, limit int) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, maxWait)
	defer cancel()
	var job struct {
		Steps []step `json:"steps"`
	}
	if _, err := r.JSON(ctx, forgehttp.Call{Path: r.path("actions", "jobs", id)}, &job); err != nil {
		return "", err
	}
	failed := step{}
	for _, s := range job.Steps {
		if s.Conclusion == "failure" || s.Conclusion == "timed_out" {
			failed = s
			break
		}
	}
	body, err := r.Text(ctx, forgehttp.Call{Path: r.path("actions", "jobs", id, "logs")})
	if err != nil {
		return "", err
	}
	defer body.Close() //nolint:errcheck // only read
	log, err := cut(io.LimitReader(body, maxLog), failed, limit)
	if err != nil {
		return "", fmt.Errorf("%s: the log ended early: %w", r.Base.Host, cmp.Or(context.Cause(ctx), pluginerr.ErrTransient))
	}
	return log, nil
}

// stamp matches the time at the start of a line.
var stamp = lazyregexp.New(`^\x{FEFF}?(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z) ?`)

// cut returns the end of the part of a log that a step wrote, or of the whole log if the step has no times. A log of GitHub Actions does
// not name its steps. A step begins with a group whose title is Run and its command, and a failed one ends with an error; the
// times of steps have seconds only, so the first and the last lines within them can be of other steps.
func cut(log io.Reader, failed step, limit int) (string, error) {
	c := &cutter{limit: limit, begin: failed.StartedAt.Truncate(time.Second), end: failed.CompletedAt.Truncate(time.Second).Add(time.Second)}
	c.timed = !failed.StartedAt.IsZero() && !failed.CompletedAt.IsZero()
	c.inside = !c.timed
	lines := bufio.NewReader(log)
	for more := true; more; {
		line, err := readLine(lines)
		if err != nil && !errors.Is(err, io.EOF) {
			return "", err
		}
		more = c.add(line) && err == nil
	}
	return forgehttp.Tail(strings.TrimRight(string(c.kept), "\n"), limit), nil
}

// cutter collects the lines of a step.
type cutter struct {
	limit      int
	timed      bool // the step has times
	begin, end time.Time
	inside     bool // the last line with a time is within them
	failed     bool // the step has ended with an error
	kept       []byte
}

// add adds the next line of the log. It reports whether the step may have more lines.
func (c *cutter) add(line string) bool {
	if found := stamp.FindStringSubmatch(line); found != nil {
		line = line[len(found[0]):]
		if at, err := time.Parse(time.RFC3339Nano, found[1]); err == nil && c.timed {
			c.inside = !at.Before(c.begin) && at.Before(c.end)
		}
	}
	begins := strings.HasPrefix(line, "##[group]Run ")
	switch {
	case c.timed && c.failed && (!c.inside || begins || strings.HasPrefix(line, "Post job cleanup.")):
		return false
	case !c.inside:
		return true
	case c.timed && begins:
		c.kept = nil // it was the step before
	}
	c.failed = c.failed || strings.HasPrefix(line, "##[error]")
	if c.kept = append(c.kept, forgehttp.Clean(marks.ReplaceAllString(line, ""))...); len(c.kept) > 4*c.limit {
		c.kept = c.kept[len(c.kept)-2*c.limit:]
	}
	return true
}

// marks matches the commands at the start of a line that format the page of a log. The titles of groups and the texts of
// errors are shown.
var marks = lazyregexp.New(`^##\[(?:group|endgroup|command|debug|section|error|warning|notice)\]`)

// maxLine is the number of bytes that are kept of a line of a log.
const maxLine = 64 << 10

// readLine returns the next line with its end. It cuts lines that are longer than maxLine.
func readLine(r *bufio.Reader) (string, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		if room := maxLine - len(line); room > 0 {
			line = append(line, part[:min(len(part), room)]...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err == nil && len(line) == maxLine {
			line[maxLine-1] = '\n'
		}
		return string(line), err
	}
}
