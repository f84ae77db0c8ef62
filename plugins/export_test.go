package plugins

import "time"

// Hurry makes the host give up sooner on a plugin that does not become ready, and
// on one that does not say how it is. It holds for what is started afterwards, and
// is not for while something starts.
func (h *Host) Hurry(start, beat, patience time.Duration) {
	h.pace.start, h.pace.beat, h.pace.patience = start, beat, patience
}

// Speak makes the host offer those versions of the contracts.
func (h *Host) Speak(versions ...int) { h.speaks = versions }
