// Package process runs other people's programs as children that can be stopped
// whole: one child is one handle, and when Wait has returned nothing that the
// child ever started is alive.
//
// A child is not started directly but through the hidden launcher command of
// our own binary (Main), which stays between coven and the child as its shim:
//
//	coven ── shim ── fence ═ exec ═> the program
//
// The shim is the init of a PID namespace, so the kernel kills whatever is left
// when it ends. Where no such namespace can be had it is a child subreaper that
// hunts the tree until the kernel says that no child is left, and a second
// process, the guard, stands between coven and it, so that killing either of
// the two does not free the tree. The fence is a second re-exec in which limits
// that cannot be taken back are put on before the program takes its place.
//
// Rules:
//   - What runs is told to the shim in a memory file, never in its argv or
//     environment, so that no process listing shows it.
//   - The program's environment is exactly Spec.Env. It inherits no descriptor
//     but 0, 1 and 2, no signal mask and no ignored signal, and it has a session
//     of its own without a controlling terminal.
//   - Standard input is a pipe; standard output and error are one raw
//     pseudo-terminal, so bytes arrive as they were written.
//   - Stopping is TERM to the whole tree, a grace, KILL. The same happens to
//     what is left behind when the program ends by itself.
//   - When coven dies, of whatever, the tree is killed.
//
// On macOS there are neither namespaces nor subreapers. The shim finds the tree in
// the kernel's list of all processes instead, which it reads five times a second and
// again while it stops the tree: what descends from it, what shares a session with
// that, and what did when it was last seen (ProcessGroup). It signals process groups
// until no member is alive; should the shim be killed, coven does that in its place.
// This is weaker, and the rules above hold with these exceptions:
//   - A process that starts a session of its own, and whose parent ends before the
//     list is read again, escapes, and Wait returns while it lives.
//   - The tree survives when coven and the shim are killed at once.
//   - Contains does not know orphans.
//   - A set-uid program gains its privileges; it cannot be killed, and is not waited for.
//   - The order is a temporary file of mode 0600 without a name, so it is on disk.
//
// The parts for macOS are compiled and have not run there yet. ProcessGroup itself is
// tested on Linux, where ContainmentEnv can ask for it.
package process
