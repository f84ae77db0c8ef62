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
// The package works on Linux only.
package process
