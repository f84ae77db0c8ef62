package fakeclaude

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// misbehave applies the faults before the first answer. It reports
// whether the message has been answered.
func (r *run) misbehave() (bool, error) {
	fault := r.fault
	r.fault.Garbage, r.fault.BigLine = nil, 0
	if fault.Hang {
		return true, r.hang()
	}
	for _, line := range fault.Garbage {
		r.out.line(line)
	}
	if fault.BigLine > 0 {
		r.out.event("assistant", object{
			"message": object{
				"id": newUUID(), "role": "assistant", "type": "message", "model": r.api.model,
				"content": []object{textBlock(strings.Repeat("x", fault.BigLine))},
			},
			"parent_tool_use_id": nil,
		})
	}
	for _, line := range fault.Script {
		r.out.line(line)
	}
	return len(fault.Script) > 0, nil
}

// hangScript leaves an orphan behind. It has its own session, whose leader has exited,
// and keeps the CLI's output open.
const hangScript = `( trap "" HUP INT TERM
while :; do echo $BASHPID >> "$HOME/.fake-claude/heartbeat"; sleep 0.05; done ) < /dev/null &`

// hang returns only if its children could not be started.
func (r *run) hang() error {
	signal.Ignore(syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM)
	for range 2 {
		command := exec.CommandContext(context.Background(), "bash", "-c", hangScript)
		command.Stdout, command.Stderr = os.Stdout, os.Stderr
		command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := command.Run(); err != nil {
			return fmt.Errorf("start children that hang: %w", err)
		}
	}
	for {
		<-time.After(time.Hour) // the runtime would report a bare select as a deadlock
	}
}
