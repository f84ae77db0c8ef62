package servertest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// postgres is a PostgreSQL server. It listens only to a socket in its directory, port 5432, where the
// directory's permissions keep others out.
type postgres struct {
	dir     string
	stays   bool // dir
	process *process
}

// startPostgres starts a server with the files in dir, or in a temporary directory if that is empty.
func startPostgres(ctx context.Context, logFile, dir string) (*postgres, error) {
	bin, err := postgresPrograms()
	if err != nil {
		return nil, err
	}
	account, err := postgresAccount()
	if err != nil {
		return nil, err
	}
	logs, err := os.Create(logFile)
	if err != nil {
		return nil, err
	}
	defer func() { _ = logs.Close() }()
	p := &postgres{dir: dir, stays: dir != ""}
	if p.stays {
		err = os.MkdirAll(dir, 0o700)
	} else {
		// Not below a test's directory, which another account cannot enter and whose path may be too
		// long for a socket.
		dir, err = os.MkdirTemp("", "pg")
		p.dir = dir
	}
	if err != nil {
		return nil, err
	}
	if account != nil {
		if err := os.Chown(dir, int(account.Uid), int(account.Gid)); err != nil {
			return nil, errors.Join(err, p.stop())
		}
	}
	command := func(ctx context.Context, program string, args ...string) *exec.Cmd {
		cmd := exec.CommandContext(ctx, filepath.Join(bin, program), args...)
		cmd.Dir, cmd.Stdout, cmd.Stderr = dir, logs, logs
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: account}
		return cmd
	}
	data := filepath.Join(dir, "data")
	if _, err := os.Stat(data); err != nil {
		initdb := command(ctx, "initdb", "-D", data, "-U", "temporal", "--auth=trust", "--encoding=UTF8", "--no-locale", "--no-sync")
		if err := initdb.Run(); err != nil {
			return nil, errors.Join(fmt.Errorf("initdb: %w\n%s", err, tail(logFile)), p.stop())
		}
	}
	for _, lock := range []string{filepath.Join(data, "postmaster.pid"), filepath.Join(dir, ".s.PGSQL.5432.lock")} { // of a server that was killed
		if err := os.Remove(lock); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	// It outlives its start's context.
	p.process, err = launch(command(context.WithoutCancel(ctx), "postgres", "-D", data, "-k", dir,
		"-c", "listen_addresses=", "-c", "unix_socket_permissions=0700"))
	if err != nil {
		return nil, errors.Join(err, p.stop())
	}
	if err := p.ready(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("postgres: %w\n%s", err, tail(logFile)), p.stop())
	}
	return p, nil
}

func (p *postgres) ready(ctx context.Context) error {
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		err := exec.CommandContext(ctx, "pg_isready", "-q", "-h", p.dir, "-p", "5432").Run()
		var not *exec.ExitError
		if !errors.As(err, &not) {
			return err
		}
		select {
		case <-again.C:
		case <-p.process.done:
			return errors.New("the server has ended")
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// stop ends the server, and removes its directory if that is a temporary one.
func (p *postgres) stop() error {
	if p.process != nil && !p.process.ended() {
		// SIGQUIT: at once, with its children.
		if err := p.process.cmd.Process.Signal(syscall.SIGQUIT); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return err
		}
		<-p.process.done
	}
	if p.stays {
		return nil
	}
	return os.RemoveAll(p.dir)
}

// postgresPrograms returns the directory of PostgreSQL's server programs. Debian has them outside of
// PATH.
func postgresPrograms() (string, error) {
	if file, err := exec.LookPath("initdb"); err == nil {
		return filepath.Dir(file), nil
	}
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil || len(found) == 0 {
		return "", fmt.Errorf("PostgreSQL's server is %w (apt-get install postgresql)", ErrMissing)
	}
	return filepath.Dir(found[len(found)-1]), nil
}

// postgresAccount returns the account to run PostgreSQL as, which refuses to run as root. It is nil for
// this process's own.
func postgresAccount() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		return nil, fmt.Errorf("the account postgres is %w", ErrMissing)
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return nil, err
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}
