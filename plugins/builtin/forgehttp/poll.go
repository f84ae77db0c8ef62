package forgehttp

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"strings"
	"unicode"

	"github.com/coven-run/coven/plugins/forge"
	"github.com/coven-run/coven/plugins/pluginerr"
)

// Each polls pull requests one by one. state returns the state of one if its version is not the known one, and otherwise nil.
func Each(known []forge.Known, limit *forge.Limit, state func(forge.Known) (*forge.PullRequest, error)) (forge.Report, error) {
	report := forge.Report{}
	for _, k := range known {
		pull, err := state(k)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			if gone := Gone(k.Number); k.Version != gone.Version {
				report.Changed = append(report.Changed, gone)
			}
		case err != nil:
			report.Limit = *limit
			return Partial(report, err)
		case pull != nil:
			report.Changed = append(report.Changed, *pull)
		}
	}
	report.Limit = *limit
	return report, nil
}

// Gone returns the state of a pull request that does not exist.
func Gone(number int) forge.PullRequest {
	return forge.PullRequest{Number: number, State: forge.Gone, Version: "gone"}
}

// Partial returns the report of a poll that an error cut off. The pull requests that it covers are not asked for again, so that also
// a poll of many makes progress. If there are none, a rate limit is no error.
func Partial(report forge.Report, err error) (forge.Report, error) {
	limited := (*Limited)(nil)
	switch {
	case len(report.Changed) > 0 && errors.Is(err, pluginerr.ErrTransient):
		return report, nil
	case errors.As(err, &limited):
		limit := report.Limit
		limit.Until, limit.Remaining = limited.Until, 0
		return forge.Report{Limit: limit}, nil
	}
	return forge.Report{}, err
}

// Hash returns a version that identifies the values.
func Hash(values ...any) string {
	text, _ := json.Marshal(values) // plain data can always be encoded
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}

// HostToken returns the token for a host from the user's variables: a token variable, and one with the host for which the token is, as a name or
// an address. Without the latter, the token is for the usual host. On any other host, it returns "".
func HostToken(host, token, its, usual string) string {
	if at, err := url.Parse(its); err == nil && at.Host != "" {
		its = at.Host
	}
	if its = strings.TrimSpace(its); its == "" {
		its = usual
	}
	if !strings.EqualFold(host, its) {
		return ""
	}
	return strings.TrimSpace(token)
}

// PageOf returns the address of a page, or "" if the text is none.
func PageOf(text string) string {
	if len(text) > forge.MaxLine || !strings.HasPrefix(text, "https://") && !strings.HasPrefix(text, "http://") || forge.ClipLine(text) != text {
		return ""
	}
	return text
}

// IsFile reports whether the text is the path of a file in a repository.
func IsFile(text string) bool {
	return text != "" && path.Clean(text) == text && !path.IsAbs(text) && !strings.HasPrefix(text, "../") && text != "." && text != ".." &&
		len(text) <= forge.MaxLine && !strings.ContainsFunc(text, unicode.IsControl)
}

// Inner returns the error of a request about a part of a pull request that exists: if the part does not, it may at the next poll.
func Inner(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: %w", err.Error(), pluginerr.ErrTransient)
	}
	return err
}
