// Package holder formats and parses the names of claim holders: coven processes
// and sessions.
package holder

import (
	"cmp"
	"fmt"
	"os"
	"strings"

	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/worktree/claim"
)

// ActorPrefix begins the name under which coven claims a task in a tracker. The machine
// and the session ID follow. The name must be unique, because bd lets one actor claim twice.
const ActorPrefix = "coven/"

// ActorOf returns the name under which a session of this machine claims its task.
func ActorOf(session string) string { return ActorPrefix + Machine() + "/" + session }

// Machine returns the name of this machine.
func Machine() string {
	host, err := os.Hostname()
	if err != nil || host == "" {
		return "localhost"
	}
	return strings.ReplaceAll(host, "/", "-")
}

// ActorIn returns the name under which a session claimed its task. It is the recorded
// name, because the machine's name may have changed since.
func ActorIn(v session.View) string { return cmp.Or(v.Info.Actor, ActorOf(v.ID)) }

// Name returns the name of this process as a holder. It is unique on the machine.
func Name() string {
	return fmt.Sprintf("%s%s/%d", ActorPrefix, Machine(), os.Getpid())
}

// PidOf returns the process ID in a holder's name, coven/<host>/<pid>.
func PidOf(holder string) string { return holder[strings.LastIndexByte(holder, '/')+1:] }

// HostOf returns the machine in the name of a holder or an actor, coven/<host>/...
func HostOf(holder string) string {
	host, _, _ := strings.Cut(strings.TrimPrefix(holder, ActorPrefix), "/")
	return host
}

// OwnerOf returns the tracker's assignee for a claim.
func OwnerOf(held claim.Held) string {
	return ActorPrefix + HostOf(held.Holder) + "/" + held.Session
}
