package egress

import "net/netip"

// kind classifies addresses by who can be reached there.
type kind int

const (
	public  kind = iota
	private      // this machine or its network: only for hosts that a person named
	never        // link-local (which has credentials of cloud machines), multicast, unspecified
)

// privateNets lists networks that are not part of the internet, in addition to those known to netip:
// shared by carriers, for benchmarks, reserved, and discard-only.
var privateNets = []netip.Prefix{
	netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("192.0.0.0/24"), netip.MustParsePrefix("198.18.0.0/15"),
	netip.MustParsePrefix("240.0.0.0/4"), netip.MustParsePrefix("100::/64"), netip.MustParsePrefix("fec0::/10"),
	netip.MustParsePrefix("64:ff9b:1::/48"),
}

// thisNet is 0.0.0.0/8: connecting to it reaches this machine.
var thisNet = netip.MustParsePrefix("0.0.0.0/8")

// kindOf returns the kind of an address. An IPv6 address that embeds an IPv4 address
// has the kind of the latter.
func kindOf(addr netip.Addr) kind {
	addr = embedded(addr.Unmap())
	switch {
	case !addr.IsValid(), addr.IsUnspecified(), addr.IsMulticast(), addr.IsLinkLocalUnicast(), thisNet.Contains(addr),
		addr == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return never
	case addr.IsLoopback(), addr.IsPrivate():
		return private
	}
	for _, net := range privateNets {
		if net.Contains(addr) {
			return private
		}
	}
	return public
}

// Networks whose IPv6 addresses embed an IPv4 address.
var (
	nat64        = netip.MustParsePrefix("64:ff9b::/96")
	sixToFour    = netip.MustParsePrefix("2002::/16")
	v4Compatible = netip.MustParsePrefix("::/96")
)

func embedded(addr netip.Addr) netip.Addr {
	if !addr.Is6() {
		return addr
	}
	b := addr.As16()
	switch {
	case addr.IsLoopback(), addr.IsUnspecified():
		return addr
	case nat64.Contains(addr), v4Compatible.Contains(addr):
		return netip.AddrFrom4([4]byte(b[12:]))
	case sixToFour.Contains(addr):
		return netip.AddrFrom4([4]byte(b[2:6]))
	}
	return addr
}
