// Package holder names who holds a claim: a coven on a machine, or one of its sessions.
package holder

import (
	"cmp"
	"fmt"
	"os"
	"strings"

	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/worktree"
)

// ActorPrefix begins the name under which coven claims a task in a tracker; the machine
// and the session's id follow. The name is unique: bd lets one actor claim twice.
const ActorPrefix = "coven/"

// ActorOf returns the name under which a session of this machine claims its task.
func ActorOf(session string) string { return ActorPrefix + Machine() + "/" + session }

// Machine is the name of this machine.
func Machine() string {
	host, err := os.Hostname()
	if err != nil || host == "" {
		return "localhost"
	}
	return strings.ReplaceAll(host, "/", "-")
}

// ActorIn is the name under which a session claimed its task: the machine may
// have had another name then.
func ActorIn(v session.View) string { return cmp.Or(v.Info.Actor, ActorOf(v.ID)) }

// Name is who claims: unique for a coven on a machine.
func Name() string {
	return fmt.Sprintf("%s%s/%d", ActorPrefix, Machine(), os.Getpid())
}

// PidOf is the process of a holder: coven/<host>/<pid>.
func PidOf(holder string) string { return holder[strings.LastIndexByte(holder, '/')+1:] }

// HostOf is the machine of a holder or an actor: coven/<host>/...
func HostOf(holder string) string {
	host, _, _ := strings.Cut(strings.TrimPrefix(holder, ActorPrefix), "/")
	return host
}

// OwnerOf is who the tracker says has a task under this claim.
func OwnerOf(held worktree.Held) string {
	return ActorPrefix + HostOf(held.Holder) + "/" + held.Session
}
