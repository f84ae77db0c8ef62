// Package egress guards the network: a proxy on loopback that connects the
// programs of a task only to the hosts on a list.
//
// It is a guard, not a wall. Programs use the proxy because variables of their
// environment name it (Proxy.Env). A program that ignores them connects directly; Landlock
// could only restrict TCP by port. The guard stops accidents, curious agents and install
// scripts that call home, and reports each refused host.
//
// Rules:
//   - The proxy supports CONNECT, and plain HTTP with an absolute URL. Each request
//     must have the token that is part of the proxy's URL, so that other users and programs
//     of the machine cannot use it. ssh and other protocols do not use a proxy.
//   - The host is the one in the request line. A Host header, or the name in the TLS
//     handshake, is not compared with the list, because the operator of an allowed host controls
//     all content there.
//   - A host is allowed if a Pattern matches its name and port. An address is allowed only if
//     the list contains the address.
//   - A name is resolved once, and each address is checked immediately before the
//     connection. Link-local addresses (cloud metadata), multicast and unspecified addresses
//     are never allowed. Loopback and private addresses are allowed only if the pattern is a
//     single host name from a user's setting, not from coven's tables or with a *.
//   - If the user has a proxy, connections go through it like the user's own, and NO_PROXY
//     applies. The user's proxy resolves names then, and coven cannot check their addresses.
//   - Nothing outlives Close: when it returns, the listener, all connections and all goroutines have ended.
package egress
