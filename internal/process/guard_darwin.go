package process

import "errors"

// guard is for a containment that macOS does not have.
func (w *wire) guard() int {
	return w.fail(newFailure(errors.New("macOS has no subreapers")))
}
