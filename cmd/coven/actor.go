package main

import (
	"cmp"
	"fmt"
	"os"
	"strings"

	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/worktree"
)

// actorPrefix, the machine and a session's id are the name under which coven
// claims a task in a tracker. It is unique: bd lets one actor claim twice.
const actorPrefix = "coven/"

func actorOf(session string) string { return actorPrefix + machine() + "/" + session }

// machine is the name of this machine.
func machine() string {
	host, err := os.Hostname()
	if err != nil || host == "" {
		return "localhost"
	}
	return strings.ReplaceAll(host, "/", "-")
}

// actorIn is the name under which a session claimed its task: the machine may
// have had another name then.
func actorIn(v session.View) string { return cmp.Or(v.Info.Actor, actorOf(v.ID)) }

// holderName is who claims: unique for a coven on a machine.
func holderName() string {
	return fmt.Sprintf("%s%s/%d", actorPrefix, machine(), os.Getpid())
}

// pidOf is the process of a holder: coven/<host>/<pid>.
func pidOf(holder string) string { return holder[strings.LastIndexByte(holder, '/')+1:] }

// hostOf is the machine of a holder or an actor: coven/<host>/...
func hostOf(holder string) string {
	host, _, _ := strings.Cut(strings.TrimPrefix(holder, actorPrefix), "/")
	return host
}

// ownerOf is who the tracker says has a task under this claim.
func ownerOf(held worktree.Held) string {
	return actorPrefix + hostOf(held.Holder) + "/" + held.Session
}
