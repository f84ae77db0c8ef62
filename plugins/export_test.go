package plugins

import "time"

// Hurry makes the host give up sooner on a plugin that does not become ready, and
// on one that does not say how it is. It holds for what is started afterwards, and
// is not for while something starts.
func (h *Host) Hurry(start, interval, timeout time.Duration) {
	h.timing.start, h.timing.interval, h.timing.timeout = start, interval, timeout
}

// Speak makes the host offer those versions of the contracts.
func (h *Host) Speak(versions ...int) { h.speaks = versions }

// Contradiction is contradiction.
var Contradiction = contradiction
