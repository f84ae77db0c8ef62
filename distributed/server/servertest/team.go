package servertest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coven-run/coven/distributed/server"
)

// Team is a running server of team.yaml.
type Team struct {
	*Server
	dir string     // of certificates and keys
	mu  sync.Mutex // held while team.sh runs, which is for one administrator
}

// TeamOptions configure a server of team.yaml.
type TeamOptions struct {
	// Host is the address, an IP, that the frontend listens to. It is 127.0.0.1 if empty.
	Host string
	// NoAuthorizer lets every client with a certificate do everything.
	NoAuthorizer bool
	// Database is a directory for PostgreSQL's files, with a short path that its account can enter. It may have those of an earlier server, which
	// was killed, and it stays. If it is empty, the directory is a temporary one.
	Database string
}

// UseTeam starts a server like StartTeam for a test and stops it at the test's end. It skips the test
// if a program is missing.
func UseTeam(t testing.TB, o TeamOptions) *Team {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	team, err := StartTeam(ctx, t.TempDir(), o)
	if team == nil {
		team = &Team{}
	}
	stopAtEnd(t, team.Server, err)
	return team
}

// StartTeam starts the server of team.yaml, set up by team.sh, and a PostgreSQL server of its own for
// it. dir receives the configuration, certificates and logs. The error is ErrMissing if Temporal's
// programs, PostgreSQL's or openssl are not installed.
func StartTeam(ctx context.Context, dir string, o TeamOptions) (*Team, error) {
	team, err := newTeam(dir, o)
	if err != nil {
		return nil, err
	}
	database, err := startPostgres(ctx, filepath.Join(dir, "postgres.log"), o.Database)
	if err != nil {
		return nil, err
	}
	team.cleanup = database.stop
	team.env = append(team.env, "PGHOST="+database.dir, "PGPORT=5432", "PGUSER=temporal")
	if err := team.SetUp(ctx); err != nil {
		return nil, errors.Join(err, database.stop())
	}
	if team.client, err = team.Client(ctx, "servertest", server.Namespace+":admin"); err != nil {
		return nil, errors.Join(err, database.stop())
	}
	if err := team.start(ctx); err != nil {
		return nil, err
	}
	return team, nil
}

func newTeam(dir string, o TeamOptions) (*Team, error) {
	binary, err := Binary("server")
	if err != nil {
		return nil, err
	}
	sql, err := Binary("sql")
	if err != nil {
		return nil, err
	}
	for _, program := range []string{"openssl", "basenc", "psql", "pg_isready"} {
		if _, err := exec.LookPath(program); err != nil {
			return nil, fmt.Errorf("%s is %w", program, ErrMissing)
		}
	}
	setup := filepath.Join(dir, "setup")
	if err := errors.Join(os.RemoveAll(setup), os.CopyFS(setup, server.Files)); err != nil {
		return nil, err
	}
	port, err := freePorts(10)
	if err != nil {
		return nil, err
	}
	host := "127.0.0.1"
	if o.Host != "" {
		host = o.Host
	}
	team := &Team{dir: filepath.Join(dir, "team"), Server: &Server{
		address: net.JoinHostPort(host, strconv.Itoa(port)),
		script:  filepath.Join(dir, "setup", "team.sh"),
		args:    []string{"start"},
		log:     filepath.Join(dir, "server.log"),
	}}
	team.env = environment("COVEN_TEMPORAL_SERVER="+binary, "COVEN_TEMPORAL_SQL="+sql, "COVEN_TEMPORAL_DIR="+team.dir,
		"COVEN_TEMPORAL_LISTEN="+host, "COVEN_TEMPORAL_PORT="+strconv.Itoa(port))
	if o.NoAuthorizer {
		team.env = append(team.env, "COVEN_TEMPORAL_AUTHORIZER=none")
	}
	return team, nil
}

// SetUp runs team.sh init, as an upgrade does: databases' schema, certificates and keys.
func (t *Team) SetUp(ctx context.Context) error {
	host, _, err := net.SplitHostPort(t.address)
	if err != nil {
		return err
	}
	_, err = t.run(ctx, "init", host)
	return err
}

// Client makes a certificate for a client, and a token if there are permissions, such as
// "coven:write". It returns the client's variables TEMPORAL_..., as Environ does, once a running
// server knows the token.
func (t *Team) Client(ctx context.Context, name string, permissions ...string) ([]string, error) {
	if _, err := t.run(ctx, "client", name); err != nil {
		return nil, err
	}
	file := filepath.Join(t.dir, "clients", name)
	env := []string{
		"TEMPORAL_ADDRESS=" + t.address,
		"TEMPORAL_NAMESPACE=" + server.Namespace,
		"TEMPORAL_TLS_SERVER_CA_CERT_PATH=" + filepath.Join(t.dir, "ca.pem"),
		"TEMPORAL_TLS_CLIENT_CERT_PATH=" + file + ".pem",
		"TEMPORAL_TLS_CLIENT_KEY_PATH=" + file + ".key",
	}
	if len(permissions) == 0 {
		return env, nil
	}
	token, err := t.run(ctx, append([]string{"token", name}, permissions...)...)
	if err != nil {
		return nil, err
	}
	env = append(env, "TEMPORAL_API_KEY="+token)
	if t.process == nil || t.process.ended() {
		return env, nil
	}
	return env, t.poll(ctx, func() error {
		c, err := connect(ctx, env)
		if err == nil {
			c.Close()
		}
		return err
	})
}

// Revoke makes a client's tokens invalid. A running server notices within seconds.
func (t *Team) Revoke(ctx context.Context, name string) error {
	_, err := t.run(ctx, "revoke", name)
	return err
}

// run runs team.sh and returns its output.
func (t *Team) run(ctx context.Context, args ...string) (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	cmd := exec.CommandContext(ctx, "bash", append([]string{t.script}, args...)...)
	cmd.Env = t.env
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("team.sh %s: %w\n%s%s", args[0], err, stderr.String(), tail(filepath.Join(t.dir, "sql.log")))
	}
	return strings.TrimSpace(string(out)), nil
}
