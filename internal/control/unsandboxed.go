package control

import "context"

// The commands that accept running without a sandbox.
const (
	runUnsandboxed    = "coven run --unsandboxed"
	resumeUnsandboxed = "coven resume --unsandboxed"
)

// checkSandbox returns an error if there is no sandbox and the user has not accepted this for the repository: see
// consent.Sandbox. next is the command that accepts it.
func (c *Controller) checkSandbox(ctx context.Context, next string) error {
	return c.Runtime.consent.Check(ctx, next, c.Unsandboxed)
}

// AcceptUnsandboxed records that the user accepts running without a sandbox in this repository.
func (c *Controller) AcceptUnsandboxed() error { return c.Runtime.consent.Accept() }
