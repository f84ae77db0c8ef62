package plugins

import "time"

// Hurry shortens the timeouts for the start of a plugin and for health checks. It applies to later starts
// and must not be called during a start.
func (h *Host) Hurry(start, interval, timeout time.Duration) {
	h.timing.start, h.timing.interval, h.timing.timeout = start, interval, timeout
}

// Speak sets the versions of the contracts that the host offers.
func (h *Host) Speak(versions ...int) { h.speaks = versions }

// Contradiction exports contradiction.
var Contradiction = contradiction
