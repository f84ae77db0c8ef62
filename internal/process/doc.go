// Package process runs other programs as children whose whole process tree can be
// stopped. Each child has one handle, and when Wait returns, no process that the child
// started is alive.
//
// A child is started through the hidden launcher command of our own binary (Main),
// which stays between coven and the child as its shim:
//
//	coven ── shim ── fence ═ exec ═> the program
//
// The shim is the init of a PID namespace, so the kernel kills the rest of the tree when
// the shim ends. If no such namespace is available, the shim is a child subreaper that
// kills processes until the kernel reports that no child is left, and a second process,
// the guard, runs between coven and the shim, so that killing one of the two does not
// free the tree. The fence is a second re-exec, which sets irrevocable limits before it
// executes the program.
//
// Rules:
//   - The shim gets its order in a memory file, never in its argv or environment, so
//     that no process list shows it.
//   - The program's environment is exactly Spec.Env. It inherits no descriptors except
//     0, 1 and 2, no signal mask and no ignored signals, and it has its own session
//     without a controlling terminal.
//   - Standard input is a pipe; standard output and error are one raw pseudo-terminal,
//     so output is not converted.
//   - Stopping sends TERM to the whole tree, waits for a grace period, and sends KILL.
//     The same happens to processes left behind when the program ends by itself.
//   - If coven dies for any reason, the tree is killed.
//   - With a Boundary, the kernel refuses all changes outside of it, even for root.
//
// macOS has neither namespaces nor subreapers. There, the shim finds the tree in the
// kernel's list of all processes, which it reads five times a second and again while it
// stops the tree: its descendants, the processes in their sessions, and earlier members
// (ProcessGroup). It signals process groups until no member is alive. If the shim is
// killed, coven does that instead. This is weaker; the rules above have these exceptions:
//   - A process escapes if it starts its own session and its parent ends before the list
//     is read again. Wait may return while it is alive.
//   - The tree survives if coven and the shim are killed at once.
//   - Contains does not recognize orphans.
//   - A set-uid program gains its privileges; it cannot be killed, and is not waited for.
//   - The order is an unnamed temporary file of mode 0600, so it is on disk.
//
// The macOS parts compile but have not run there yet. ProcessGroup itself is tested on
// Linux, where ContainmentEnv can force it.
package process
