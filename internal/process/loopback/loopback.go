// Package loopback sets up the network namespace of a program. Package relay is the other end. The launcher imports this
// package, so it must not import net, which would delay the start of every program.
package loopback

// MaxPorts is the maximum number of ports: the kernel passes at most 253 descriptors at once.
const MaxPorts = 250

// NoSocket is the descriptor for Open if there are no ports.
const NoSocket = -1
