package egress

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Pattern is an entry of the list of hosts to which programs may connect.
type Pattern struct {
	host       host
	subdomains bool   // matches only hosts below host
	port       uint16 // 0 for those of HTTP and HTTPS
	// named is set if a person named this single host, which allows a private address.
	named bool
	// source is the origin of the entry: sandbox.network, go.mod.
	source string
}

// PatternError is returned for an invalid pattern.
type PatternError struct {
	Pattern string
	Reason  string // a clause, such as: the port "x" is not a number from 1 to 65535
}

func (e *PatternError) Error() string {
	return fmt.Sprintf("invalid host %q: %s; write example.com, *.example.com or example.com:8443", e.Pattern, e.Reason)
}

// NextCommand returns the command that explains the setting.
func (e *PatternError) NextCommand() string { return "coven config explain sandbox.network" }

// ParsePattern parses an entry of sandbox.network: a name (example.com), all names below it
// (*.example.com, which does not include example.com), or an address (10.0.0.5, [fd00::5]).
// Without a port (:8443), it matches the ports 80 and 443. The error is a *PatternError.
func ParsePattern(text string) (Pattern, error) {
	p, err := parsePattern(text)
	if err != nil {
		return Pattern{}, &PatternError{text, err.Error()}
	}
	p.source = "sandbox.network"
	return p, nil
}

func parsePattern(text string) (Pattern, error) {
	if err := checkPattern(text); err != nil {
		return Pattern{}, err
	}
	var p Pattern
	name, port := splitPort(text)
	if port != "" {
		n, err := parsePort(port)
		if err != nil {
			return Pattern{}, err
		}
		p.port = n
	}
	name, p.subdomains = strings.CutPrefix(name, "*.")
	h, err := parseHost(name)
	switch {
	case err != nil:
		return Pattern{}, err
	case p.subdomains && h.addr.IsValid():
		return Pattern{}, errors.New("an address has no subdomains")
	case h.addr.IsValid() && kindOf(h.addr) == never:
		return Pattern{}, errors.New("link-local, multicast and unspecified addresses are never allowed")
	}
	p.host, p.named = h, !p.subdomains
	return p, nil
}

// checkPattern returns an error for common mistakes.
func checkPattern(text string) error {
	switch {
	case text == "":
		return errors.New("it is empty")
	case strings.TrimSpace(text) != text:
		return errors.New("it begins or ends with white space")
	case strings.Contains(text, "://"):
		return errors.New("it is a URL")
	case strings.Contains(text, "/"):
		return errors.New("paths and networks (10.0.0.0/8) cannot be allowed, only hosts")
	case strings.Contains(text, "@"):
		return errors.New("it contains a user name")
	case text == "*", strings.HasPrefix(text, "*:"):
		return errors.New("it means every host")
	case strings.Contains(strings.TrimPrefix(text, "*."), "*"):
		return errors.New("* is allowed only in front of the first dot")
	case strings.HasSuffix(text, ":") && !strings.HasSuffix(text, "::"):
		return errors.New("the port is missing")
	}
	return nil
}

// splitPort splits host:port. An IPv6 address without brackets has no port.
func splitPort(text string) (name, port string) {
	i := strings.LastIndex(text, ":")
	if i < 0 || i < strings.LastIndex(text, "]") || strings.Count(text, ":") > 1 && !strings.HasPrefix(text, "[") {
		return text, ""
	}
	return text[:i], text[i+1:]
}

// String returns the pattern in the format of ParsePattern.
func (p Pattern) String() string {
	text := p.host.String()
	if p.subdomains {
		text = "*." + text
	}
	if p.port != 0 {
		text += ":" + strconv.Itoa(int(p.port))
	}
	return text
}

// Source returns the origin of the pattern: a setting, a remote, or the file
// that identifies its ecosystem.
func (p Pattern) Source() string { return p.source }

// matches reports whether the pattern allows a host and port.
func (p Pattern) matches(h host, port uint16) bool {
	if p.port != port && (p.port != 0 || port != 80 && port != 443) {
		return false
	}
	if p.subdomains {
		return !h.addr.IsValid() && strings.HasSuffix(h.name, "."+p.host.name)
	}
	return p.host == h
}
