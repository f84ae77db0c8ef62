package process

import (
	"fmt"
	"os"
	"syscall"
)

// guard starts the reaper and watches it. If the reaper dies, the guard, which is also
// a subreaper, ends the tree. The reaper receives coven's commands through a pipe that
// the guard holds, and ends the tree if the pipe breaks.
func (w *wire) guard() int {
	reader, writer, err := os.Pipe()
	if err != nil {
		return w.fail(newFailure(fmt.Errorf("make guard pipe: %w", err)))
	}
	files := []uintptr{0, 1, 2, w.memory.Fd(), reader.Fd(), w.status.Fd()}
	if !w.order.Inherit {
		files = append(files, w.input.Fd(), w.terminal.Fd())
	}
	pid, err := w.next(reaperStage, files...)
	if err != nil {
		return w.fail(newFailure(fmt.Errorf("start reaper: %w", err)))
	}
	go func() {
		_, _ = writer.ReadFrom(w.control)
		_ = writer.Close()
	}()
	watch := &watch{tree: subreaperTree{}}
	return watch.run(reap(pid, syscall.WUNTRACED, watch.tree.lingers))
}
