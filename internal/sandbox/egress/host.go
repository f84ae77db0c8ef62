package egress

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"golang.org/x/net/idna"
)

// maxHost is the maximum length of a DNS name in bytes.
const maxHost = 253

// host is a normalized host for comparisons: an address, or a name in
// lower case ASCII without a trailing dot.
type host struct {
	name string
	addr netip.Addr // zero for a name
}

func (h host) String() string {
	if h.addr.Is6() {
		return "[" + h.addr.String() + "]"
	}
	return h.name
}

// withPort formats the host for a URL or sandbox.network. It omits the
// ports of HTTP and HTTPS, which every pattern includes.
func (h host) withPort(port uint16) string {
	if port == 80 || port == 443 {
		return h.String()
	}
	return h.String() + ":" + strconv.Itoa(int(port))
}

// dial formats the host for net.Dial.
func (h host) dial(port uint16) string { return h.String() + ":" + strconv.Itoa(int(port)) }

// parseHost parses a name, an IPv4 address, or an IPv6 address with or without brackets.
func parseHost(text string) (host, error) {
	if inner, ok := strings.CutPrefix(text, "["); ok {
		inner, ok = strings.CutSuffix(inner, "]")
		if !ok || !strings.Contains(inner, ":") {
			return host{}, errors.New("brackets enclose an IPv6 address only")
		}
		text = inner
	}
	if strings.Contains(text, ":") {
		return parseAddr(text)
	}
	name := strings.ToLower(text)
	if !ascii(name) {
		mapped, err := idna.Lookup.ToASCII(name)
		if err != nil {
			return host{}, errors.New("it is not a valid international name")
		}
		name = mapped
	}
	name = strings.TrimSuffix(name, ".")
	if err := checkName(name); err != nil {
		return host{}, err
	}
	if numeric(name[strings.LastIndex(name, ".")+1:]) {
		return parseAddr(name)
	}
	return host{name: name}, nil
}

// parseAddr parses an address. It rejects other notations that C libraries accept (127.1, 0x7f000001,
// 0177.0.0.1), because programs interpret them differently.
func parseAddr(text string) (host, error) {
	addr, err := netip.ParseAddr(text)
	switch {
	case err != nil:
		return host{}, errors.New("it is not a valid address")
	case addr.Zone() != "":
		return host{}, errors.New("addresses with a zone are not supported")
	}
	addr = addr.Unmap()
	return host{name: addr.String(), addr: addr}, nil
}

func checkName(name string) error {
	switch {
	case name == "":
		return errors.New("the host is missing")
	case len(name) > maxHost:
		return fmt.Errorf("the host has more than %d characters", maxHost)
	}
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || len(label) > 63 {
			return errors.New("the parts of a name have 1 to 63 characters")
		}
		if strings.HasPrefix(label, "-") || strings.HasSuffix(label, "-") {
			return errors.New("the parts of a name do not begin or end with -")
		}
		if i := strings.IndexFunc(label, func(r rune) bool { return !nameRune(r) }); i >= 0 {
			return fmt.Errorf("a name cannot contain %q", label[i])
		}
	}
	return nil
}

// nameRune reports whether a name may contain r. Underscores are not valid in host
// names, but are used.
func nameRune(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' || r == '_'
}

// numeric reports whether a name with this last label is an address for programs
// that accept all notations of the C library.
func numeric(label string) bool {
	digits := "0123456789"
	if hex, ok := strings.CutPrefix(label, "0x"); ok {
		label, digits = hex, "0123456789abcdef"
	}
	return strings.Trim(label, digits) == ""
}

func ascii(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

// parsePort parses a port number.
func parsePort(text string) (uint16, error) {
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || n == 0 {
		return 0, fmt.Errorf("the port %q is not a number from 1 to 65535", text)
	}
	return uint16(n), nil
}
