package egress

import (
	"errors"
	"fmt"
	"net/netip"
)

// target is a host and port that a program wants to reach.
type target struct {
	host host
	port uint16
}

// String formats the target as an entry of sandbox.network.
func (t target) String() string { return t.host.withPort(t.port) }

// refusal is the error for a target that is not allowed.
type refusal struct {
	target target
	reason string // a clause, such as: it is not on the list of hosts
	// fixable is set if an entry of sandbox.network would allow it.
	fixable bool
}

func (r *refusal) Error() string { return fmt.Sprintf("%s is not allowed: %s", r.target, r.reason) }

// LocalPorts returns the ports of this machine's loopback that a list allows.
func LocalPorts(list []Pattern) []int {
	var ports []int
	for _, p := range list {
		switch local := p.host.name == "localhost" || p.host.addr.IsLoopback(); {
		case !local || p.subdomains:
		case p.port == 0:
			ports = append(ports, 80, 443)
		default:
			ports = append(ports, int(p.port))
		}
	}
	return ports
}

// list is the list of allowed patterns.
type list []Pattern

// check returns an error if no pattern allows the target. Otherwise it reports whether the target may have a
// private address.
func (l list) check(t target) (mayBePrivate bool, err error) {
	matched := false
	for _, p := range l {
		if p.matches(t.host, t.port) {
			matched = true
			mayBePrivate = mayBePrivate || p.named
		}
	}
	if !matched {
		return false, &refusal{t, "it is not on the list of hosts", !t.host.addr.IsValid() || kindOf(t.host.addr) != never}
	}
	return mayBePrivate, nil
}

// checkAddr returns an error if the target may not have the address.
func (t target) checkAddr(addr netip.Addr, mayBePrivate bool) error {
	switch kindOf(addr) {
	case never:
		return &refusal{t, fmt.Sprintf("its address %s is link-local, multicast or unspecified", addr), false}
	case private:
		if !mayBePrivate {
			return &refusal{t, fmt.Sprintf("its address %s is private", addr), true}
		}
	}
	return nil
}

// asRefusal returns the refusal that caused an error, or nil.
func asRefusal(err error) *refusal {
	var r *refusal
	if errors.As(err, &r) {
		return r
	}
	return nil
}
