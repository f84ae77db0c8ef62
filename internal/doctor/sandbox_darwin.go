package doctor

import "context"

// sandbox reports that there is none.
func (*Examination) sandbox(context.Context) []Finding {
	return warn("", "shell commands are not sandboxed: agents can run anything you can; coven has no sandbox on macOS")
}
