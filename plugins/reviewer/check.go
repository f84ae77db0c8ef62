package reviewer

import (
	"fmt"
	"path"
	"strings"

	"github.com/coven-run/coven/plugins/pluginerr"
)

// The limits of a review. The whole review must not exceed 8 MiB.
const (
	MaxFindings = 1000
	MaxText     = 16 << 10 // bytes of a message, a suggestion or a summary
)

// Clip truncates text to MaxText bytes.
func Clip(text string) string {
	if len(text) > MaxText {
		return strings.ToValidUTF8(text[:MaxText-3], "") + "..."
	}
	return text
}

// Check returns a pluginerr.ErrInvalid for the first violation of the contract.
func (r Review) Check() error {
	switch {
	case r.Verdict != Pass && r.Verdict != Fail:
		return fmt.Errorf("verdict %s is neither pass nor fail: %w", quoted(string(r.Verdict)), pluginerr.ErrInvalid)
	case len(r.Findings) > MaxFindings:
		return fmt.Errorf("%d findings, the limit is %d: %w", len(r.Findings), MaxFindings, pluginerr.ErrInvalid)
	case len(r.Suggestions) > MaxFindings:
		return fmt.Errorf("%d suggestions, the limit is %d: %w", len(r.Suggestions), MaxFindings, pluginerr.ErrInvalid)
	case len(r.Summary) > MaxText:
		return fmt.Errorf("summary of %d bytes, the limit is %d: %w", len(r.Summary), MaxText, pluginerr.ErrInvalid)
	}
	for i, f := range r.Findings {
		if wrong := f.check(); wrong != "" {
			return fmt.Errorf("finding %d: %s: %w", i+1, wrong, pluginerr.ErrInvalid)
		}
	}
	for i, s := range r.Suggestions {
		if len(s) > MaxText {
			return fmt.Errorf("suggestion %d of %d bytes, the limit is %d: %w", i+1, len(s), MaxText, pluginerr.ErrInvalid)
		}
	}
	return nil
}

// check describes the first violation of the contract, or returns "".
func (f Finding) check() string {
	switch {
	case f.Severity != Error && f.Severity != Warning && f.Severity != Info:
		return fmt.Sprintf("severity %s is not one of error, warning, info", quoted(string(f.Severity)))
	case strings.TrimSpace(f.Message) == "":
		return "no message"
	case len(f.Message) > MaxText, len(f.Suggestion) > MaxText:
		return fmt.Sprintf("message or suggestion longer than %d bytes", MaxText)
	case f.Line < 0:
		return fmt.Sprintf("line %d", f.Line)
	case f.File == "" && f.Line > 0:
		return fmt.Sprintf("line %d without a file", f.Line)
	case f.File != "" && !inside(f.File):
		return fmt.Sprintf("file %s is not a path inside the worktree", quoted(f.File))
	}
	return ""
}

// inside reports whether a path is relative, clean and inside the worktree.
func inside(file string) bool {
	return !path.IsAbs(file) && path.Clean(file) == file && file != "." && file != ".." && !strings.HasPrefix(file, "../") &&
		!strings.ContainsAny(file, "\x00\n\r")
}

// maxQuoted is the number of bytes that are quoted from an invalid value.
const maxQuoted = 80

func quoted(text string) string {
	if len(text) > maxQuoted {
		text = text[:maxQuoted] + "..."
	}
	return fmt.Sprintf("%q", text)
}

// Counted returns the review with its effective verdict, which is Fail if a finding has severity Error.
// changed reports whether it differs from the given verdict.
func (r Review) Counted() (counted Review, changed bool) {
	for _, f := range r.Findings {
		if f.Severity == Error && r.Verdict == Pass {
			r.Verdict, changed = Fail, true
		}
	}
	return r, changed
}
