package doctor

import "context"

// sandbox reports that there is none.
func (*visit) sandbox(context.Context) []finding {
	return odd("", "shell commands are not sandboxed: agents can run anything you can; coven has no sandbox on macOS")
}
