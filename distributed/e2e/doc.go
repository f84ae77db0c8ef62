// Package e2e tests coven, coven-worker, the server and a git daemon together, as programs. The model is the one of coven's package fakeapi.
package e2e
