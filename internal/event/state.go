package event

// Status is the state of a session.
type Status string

// States of a session.
const (
	StatusRunning     Status = "running"
	StatusWaiting     Status = "waiting"
	StatusCompleted   Status = "completed"
	StatusFailed      Status = "failed"
	StatusBlocked     Status = "blocked"
	StatusCancelled   Status = "cancelled"
	StatusInterrupted Status = "interrupted"
)

// StatusPartial is the status of a subagent if no attempt has passed its evaluation.
const StatusPartial Status = "partial"

// WaitReason is the reason why a session waits.
type WaitReason string

// Reasons for waiting.
const (
	WaitReview     WaitReason = "review"     // a person decides on the change
	WaitApproval   WaitReason = "approval"   // a person is asked about a tool call; the session is running
	WaitLimit      WaitReason = "limit"      // the agent's account has reached a limit
	WaitBudget     WaitReason = "budget"     // a budget is spent
	WaitCheckout   WaitReason = "checkout"   // a checkout of the target cannot be updated now
	WaitMessage    WaitReason = "message"    // a chat without a change waits for the next message
	WaitDependency WaitReason = "dependency" // another task must be done first
	WaitCI         WaitReason = "ci"         // checks of the pull request run on its host
	WaitMerge      WaitReason = "merge"      // a person merges the pull request
	WaitRemote     WaitReason = "remote"     // the remote that keeps the session cannot be reached, or refuses it
	WaitWorker     WaitReason = "worker"     // a worker on another machine runs it, or will
)

// ErrorType is the kind of failure of a step. It is empty on success.
type ErrorType string

// Kinds of failure.
const (
	ErrorAgent       ErrorType = "agent"             // the agent reported failure
	ErrorBase        ErrorType = "base"              // a check fails in the same way without the change
	ErrorBudget      ErrorType = "budget"            // the budget of the step is spent
	ErrorCancelled   ErrorType = "cancelled"         // the requester no longer waits
	ErrorCI          ErrorType = "ci"                // a check of the pull request failed on its host
	ErrorClosed      ErrorType = "closed"            // the pull request was closed without a merge
	ErrorCommit      ErrorType = "commit"            // the work could not be committed
	ErrorConflict    ErrorType = "conflict"          // a landing had a conflict
	ErrorFindings    ErrorType = "findings"          // a review found errors
	ErrorGateLost    ErrorType = "gate_lost"         // the connection to coven's permission server was lost
	ErrorInternal    ErrorType = "internal"          // coven could not record or read something, or the worktree changed concurrently
	ErrorOutput      ErrorType = "invalid_output"    // the agent ended without a message
	ErrorLimit       ErrorType = "limit"             // the API refused because of a rate limit or overload
	ErrorLogin       ErrorType = "login"             // the API refused the login of the agent CLI
	ErrorNoChanges   ErrorType = "no_changes"        // the agent changed nothing
	ErrorPermission  ErrorType = "permission_denied" // a tool ran without permission
	ErrorApproval    ErrorType = "approval_denied"   // the agent's request was not approved
	ErrorPlugin      ErrorType = "plugin"            // a plugin gave no verdict
	ErrorProcessExit ErrorType = "process_exit"      // a command exited with a non-zero code
	ErrorProvider    ErrorType = "provider"          // the agent CLI reported failure
	ErrorRefused     ErrorType = "refused"           // a hook, a signature or git rejected the change
	ErrorRepository  ErrorType = "repository"        // refs, configuration or hooks of the repository changed during the step
	ErrorRevise      ErrorType = "revise"            // a person asked for changes
	ErrorStuck       ErrorType = "stuck"             // the agent repeated the same calls
	ErrorTemplate    ErrorType = "template"          // a template could not be rendered
	ErrorTimeout     ErrorType = "timeout"           // the step timed out
	ErrorTooLong     ErrorType = "too_long"          // a rendered command is too long
	ErrorTurns       ErrorType = "max_turns"         // the agent needed more turns than its definition allows
)
