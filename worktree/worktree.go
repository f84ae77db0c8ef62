// Package worktree manages a git worktree for each task: it adds, finds, lists and removes them, and keeps the
// files of landed worktrees in a pool for reuse. Recreate restores a worktree that a user deleted; FindStale and
// Clear find and remove the leftovers of killed processes. Each other operation has its own package below this
// directory.
//
// Rules of all these packages:
//   - Nothing is lost: before content is overwritten or removed, it is stored under
//     refs/coven/. If storing fails, nothing is removed.
//   - A user's checkout is never switched, stashed or overwritten.
//   - If the worktree does not exist, operations fail with ErrNoWorktree. They do not
//     confuse this with deleted files: each operation checks that the worktree exists
//     before and after it reads the files.
//   - The agent owns its worktree, including .git in it and the worktree's git directory.
//     coven's git commands never use these two. They run with the repository's git
//     directory, the worktree as work tree and a separate index. The content of these two
//     never decides where coven writes.
//   - An index is a cache. Each operation works on a private copy and replaces the
//     index at the end, so a killed operation leaves no lock and no partial state. An
//     operation records each move before it begins.
//   - Locks (GitDir/coven/locks) are taken in this order: gc, task, worktrees,
//     target, checkout; landing takes only the locks of its target and of the target's
//     checkouts. git child processes inherit the lock of their operation, so it lasts
//     as long as they do. The file of a lock names its holder; only the lock itself
//     shows whether it is held.
//   - A lock file of git belongs to the process that made it. Operations wait for it
//     and then report it (*BusyError, *CheckoutError), but never remove it. The only
//     exception is a lock file that a killed program of a task left in the git directory of
//     its worktree.
//     While coven changes a checkout, it holds the index lock of that checkout: see
//     package checkout.
//   - Worktrees, registrations and checkouts that coven did not make are never changed,
//     except that a checkout of the target follows a landing.
//
// On disk, in the repository's git directory: coven/tasks/<name>/ (task.json, the
// indexes, op-* with the index of each running operation, integrate.json while an
// integration runs, conflicted.json while the worktree holds a conflicted merge, watch.json while a
// step is watched, submodules.json: see package submodule, outside.json: see package sparse),
// coven/tasks/.scratch, coven/locks, coven/lines (the queues for landing: see package land),
// coven/raw (settings for snapshots), coven/moves (moves of checkouts in progress: see package
// checkout), coven/refs.log (coven's own changes of refs), coven/plain (git without the
// repository's configuration); the branches of tasks (see repo.Repo.BranchTemplate), refs/coven/{claims,snapshots,rescue}, and
// refs/notes/coven with the receipts of landings: see package notes.
// Beside the checkout, or in its .coven/worktrees (see repo.Place): the worktrees, and .pool with the files
// of landed ones, which coven/pool describes.
package worktree
