package permission

import (
	"errors"
	"net/url"
	"strings"
	"unicode/utf8"
)

// Host returns the host of an http or https URL in the form for net.fetch rules: in lower case, without
// a port and a trailing dot.
func Host(u *url.URL) (string, error) {
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return "", errors.New("only http and https URLs can be fetched")
	case u.User != nil:
		return "", errors.New("the URL must not have a user name or a password")
	case host == "":
		return "", errors.New("the URL has no host")
	case strings.ContainsFunc(host, func(r rune) bool { return r <= ' ' || r >= utf8.RuneSelf || r == 0x7f }):
		return "", errors.New("write the host of the URL in ASCII (xn--...)")
	}
	return host, nil
}
