// Package servertest runs Temporal's own server in a temporary directory, for tests and for
// harnesses that kill it. Use starts a server for a test; Start starts one for a program. It never
// builds the server: .ci/temporal does.
package servertest
