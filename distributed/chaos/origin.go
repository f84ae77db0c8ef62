package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// url is the address of the repository.
const url = "git://" + gateway + "/acme/shop.git"

// An origin is a bare repository behind git://.
type origin struct {
	dir    string
	log    *os.File
	daemon *exec.Cmd
}

func newOrigin(ctx context.Context, root string) (*origin, error) {
	g := &origin{dir: filepath.Join(root, "git", "acme", "shop.git")}
	log, err := os.Create(filepath.Join(root, "logs", "origin.log"))
	if err != nil {
		return nil, err
	}
	g.log = log
	if _, err := os.Stat(g.dir); err == nil { // of the first part of a run
		return g, g.start()
	}
	for _, args := range []string{"init -q --bare -b main " + g.dir, "-C " + g.dir + " config receive.autogc false"} {
		if _, err := output(ctx, root, os.Environ(), append([]string{"git"}, strings.Fields(args)...)...); err != nil {
			return nil, err
		}
	}
	return g, g.start()
}

func (g *origin) start() error {
	g.daemon = exec.Command("git", "daemon", "--reuseaddr", "--listen="+gateway, "--base-path="+filepath.Dir(filepath.Dir(g.dir)), "--export-all", "--enable=receive-pack", "--max-connections=0") //nolint:noctx,gosec // see stop
	g.daemon.Stdout, g.daemon.Stderr = g.log, g.log
	g.daemon.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := g.daemon.Start(); err != nil {
		return err
	}
	for look := time.Tick(20 * time.Millisecond); ; <-look {
		c, err := net.Dial("tcp", net.JoinHostPort(gateway, "9418")) //nolint:noctx // it takes no time
		if err == nil {
			return c.Close()
		}
		if g.daemon.Process.Signal(syscall.Signal(0)) != nil {
			return err
		}
	}
}

// maintain packs the repository and its refs each minute, as hosts of repositories do, until ctx ends.
func (g *origin) maintain(ctx context.Context) {
	every := time.NewTicker(time.Minute)
	defer every.Stop()
	for {
		select {
		case <-every.C:
			for _, args := range []string{"pack-refs --all", "repack --geometric=2 -d -q", "commit-graph write --reachable --split --no-progress"} {
				if _, err := output(ctx, g.dir, os.Environ(), append([]string{"git"}, strings.Fields(args)...)...); err != nil {
					fmt.Fprintln(g.log, "chaos:", err) //nolint:errcheck // a log
				}
			}
		case <-ctx.Done():
			return
		}
	}
}

// stop stops the daemon and all transfers.
func (g *origin) stop() {
	_ = syscall.Kill(-g.daemon.Process.Pid, syscall.SIGKILL)
	_ = g.daemon.Wait()
}

// refs returns the refs with a prefix.
func (g *origin) refs(ctx context.Context, prefix string) ([]string, error) {
	out, err := output(ctx, g.dir, os.Environ(), "git", "for-each-ref", "--format=%(refname)", prefix)
	return strings.Fields(out), err
}
