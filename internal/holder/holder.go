// Package holder names the holders of claims: a coven process on a machine, or one of
// its sessions.
package holder

import (
	"cmp"
	"fmt"
	"os"
	"strings"

	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/worktree/claim"
)

// ActorPrefix begins the name under which coven claims a task in a tracker; the machine
// and the session's id follow. The name is unique: bd lets one actor claim twice.
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

// ActorIn returns the name under which a session claimed its task. The machine may
// have had another name then.
func ActorIn(v session.View) string { return cmp.Or(v.Info.Actor, ActorOf(v.ID)) }

// Name returns the name of this process as a holder, which is unique on the machine.
func Name() string {
	return fmt.Sprintf("%s%s/%d", ActorPrefix, Machine(), os.Getpid())
}

// PidOf returns the process ID in the name of a holder: coven/<host>/<pid>.
func PidOf(holder string) string { return holder[strings.LastIndexByte(holder, '/')+1:] }

// HostOf returns the machine in the name of a holder or an actor: coven/<host>/...
func HostOf(holder string) string {
	host, _, _ := strings.Cut(strings.TrimPrefix(holder, ActorPrefix), "/")
	return host
}

// OwnerOf returns the tracker's assignee of a task with this claim.
func OwnerOf(held claim.Held) string {
	return ActorPrefix + HostOf(held.Holder) + "/" + held.Session
}
