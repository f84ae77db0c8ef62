package main

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
)

// nameKey is the key in the git configuration of a clone with the name of its repository. It is for clones that reach the repository at other addresses than the rest.
const nameKey = "coven.repository"

// repository returns the name of the repository of a remote of the clone in dir.
func repository(ctx context.Context, dir, remote string) (string, error) {
	address, err := addressOf(ctx, dir, remote)
	if err != nil {
		return "", err
	}
	given, _ := output(ctx, dir, "git", "config", "--get", nameKey) // an error means that there is none
	return cmp.Or(given, nameAt(ctx, dir, address)), nil
}

// addressOf returns the address from which the clone in dir fetches a remote.
func addressOf(ctx context.Context, dir, remote string) (string, error) {
	if strings.HasPrefix(remote, "-") {
		return "", usageError{fmt.Errorf("%q is not the name of a remote", remote)}
	}
	return output(ctx, dir, "git", "remote", "get-url", remote)
}

// nameAt returns the name of the repository at an address: HOST/PATH.git, or PATH.git on this machine. It does not depend on the protocol, the user or the port.
// The address of a clone in dir may be relative to it.
func nameAt(ctx context.Context, dir, address string) string {
	u, err := url.Parse(address)
	before, after, colon := strings.Cut(address, ":")
	switch {
	case err == nil && u.Host != "" && strings.Contains(u.Scheme, "ssh"):
		return name(hostOf(ctx, u.Hostname()), u.Path)
	case err == nil && u.Scheme != "" && strings.Contains(address, "://"):
		return name(u.Hostname(), u.Path)
	case colon && !strings.Contains(before, "/"): // USER@HOST:PATH
		return name(hostOf(ctx, before[strings.LastIndexByte(before, '@')+1:]), after)
	case !filepath.IsAbs(address):
		address = filepath.Join(dir, address)
	}
	return name("", address)
}

// name returns the name of the repository at a path of a host. The hosts of services for networks that block SSH, and the prefix of Bitbucket's paths for HTTP, do not
// count.
func name(host, at string) string {
	host = strings.ToLower(host)
	host = strings.TrimPrefix(strings.TrimPrefix(host, "altssh."), "ssh.")
	at = path.Clean("/" + at)
	if host != "" {
		at = strings.TrimPrefix(at, "/scm")
	}
	at = strings.TrimSuffix(strings.TrimSuffix(at, "/.git"), ".git")
	return strings.TrimPrefix(host+at, "/") + ".git"
}

// hostOf returns the host that an SSH client connects to, since the configuration of the user may have another name for it.
func hostOf(ctx context.Context, host string) string {
	out, err := exec.CommandContext(ctx, "ssh", "-G", "--", host).Output()
	if err != nil { // git may use another client
		return host
	}
	for line := range strings.Lines(string(out)) {
		if real, ok := strings.CutPrefix(line, "hostname "); ok {
			return strings.TrimSpace(real)
		}
	}
	return host
}
