package servertest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	"go.temporal.io/sdk/log"

	"github.com/coven-run/coven/distributed/server"
)

// ErrMissing reports that a program which the server needs is not installed.
var ErrMissing = errors.New("not installed")

// Server is a running server with the namespace server.Namespace.
type Server struct {
	address string
	client  []string // variables of a client that may do everything in the namespace
	script  string
	args    []string
	env     []string // of the script
	log     string
	process *process
	cleanup func() error
}

// Use starts the server of development.yaml for a test and stops it at the test's end. It skips the
// test if the server has not been built.
func Use(t testing.TB) *Server {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	s, err := Start(ctx, t.TempDir())
	stopAtEnd(t, s, err)
	return s
}

func stopAtEnd(t testing.TB, s *Server, err error) {
	t.Helper()
	if errors.Is(err, ErrMissing) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
}

// Start starts the server of development.yaml on free ports of the loopback interface. dir receives
// its configuration, database and log. Start returns once the server's namespace can be used. The
// binary is COVEN_TEMPORAL_SERVER, or else .tools/temporal/server of the repository around the
// working directory.
func Start(ctx context.Context, dir string) (*Server, error) {
	binary, err := Binary("server")
	if err != nil {
		return nil, err
	}
	if err := os.CopyFS(filepath.Join(dir, "setup"), server.Files); err != nil {
		return nil, err
	}
	port, err := freePorts(8)
	if err != nil {
		return nil, err
	}
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	s := &Server{
		address: address,
		client:  []string{"TEMPORAL_ADDRESS=" + address, "TEMPORAL_NAMESPACE=" + server.Namespace},
		script:  filepath.Join(dir, "setup", "development.sh"),
		args:    []string{filepath.Join(dir, "data")},
		env:     environment("COVEN_TEMPORAL_SERVER="+binary, "COVEN_TEMPORAL_PORT="+strconv.Itoa(port)),
		log:     filepath.Join(dir, "server.log"),
	}
	if err := s.start(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// Address is the address of the frontend, HOST:PORT. It does not change with a restart.
func (s *Server) Address() string { return s.address }

// Environ returns the variables TEMPORAL_... of a client that may do everything in the namespace,
// as "NAME=value", for coven-worker or Options.
func (s *Server) Environ() []string { return slices.Clone(s.client) }

// Options returns the options of a client with the variables TEMPORAL_... of environ, "NAME=value".
// The client does not log.
func Options(environ []string) (client.Options, error) {
	o, err := envconfig.LoadClientOptions(envconfig.LoadClientOptionsRequest{DisableFile: true, EnvLookup: variables(environ)})
	o.Logger, o.Identity = quiet{}, "test" // histories name no computer
	return o, err
}

// variables is an environment for envconfig.
type variables []string

func (v variables) Environ() []string { return v }

func (v variables) LookupEnv(name string) (string, bool) {
	for _, one := range slices.Backward(v) {
		if value, ok := strings.CutPrefix(one, name+"="); ok {
			return value, true
		}
	}
	return "", false
}

// Dial returns a client of the server. It is closed when the test ends.
func (s *Server) Dial(t testing.TB) client.Client {
	t.Helper()
	c, err := connect(t.Context(), s.Environ())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// Log is the path of the server's log.
func (s *Server) Log() string { return s.log }

// Kill kills the server's process with SIGKILL. Its database remains.
func (s *Server) Kill() error { return s.process.kill() }

// Restart starts the server after Kill, with the same ports and database. It returns once the
// namespace can be used.
func (s *Server) Restart(ctx context.Context) error { return s.start(ctx) }

// RSS is the resident memory of the server's process in bytes.
func (s *Server) RSS() (int64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.process.pid()))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(status)) {
		if kB, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			n, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(kB), " kB"), 10, 64)
			return n << 10, err
		}
	}
	return 0, errors.New("the process has ended")
}

// Stop kills the server and its database's server. The directory remains.
func (s *Server) Stop() error {
	err := s.Kill()
	if s.cleanup != nil {
		err = errors.Join(err, s.cleanup())
	}
	return err
}

func (s *Server) start(ctx context.Context) error {
	if s.process != nil && !s.process.ended() {
		return errors.New("the server is running")
	}
	logs, err := os.OpenFile(s.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = logs.Close() }()
	cmd := exec.Command("bash", append([]string{s.script}, s.args...)...) //nolint:noctx // it outlives the start's context
	cmd.Env, cmd.Stdout, cmd.Stderr = s.env, logs, logs
	p, err := launch(cmd)
	if err != nil {
		return err
	}
	s.process = p
	if err := s.poll(ctx, func() error { return s.probe(ctx) }); err != nil {
		return errors.Join(fmt.Errorf("the server does not start: %w\n%s", err, tail(s.log)), s.Stop())
	}
	return nil
}

// poll calls f until it succeeds or the server's process ends.
func (s *Server) poll(ctx context.Context, f func() error) error {
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		err := f()
		if err == nil {
			return nil
		}
		select {
		case <-again.C:
		case <-s.process.done:
			return errors.New("its process has ended")
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
	}
}

func connect(ctx context.Context, environ []string) (client.Client, error) {
	options, err := Options(environ)
	if err != nil {
		return nil, err
	}
	return client.DialContext(ctx, options)
}

// probe succeeds if frontend, history and matching answer for the namespace.
func (s *Server) probe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	c, err := connect(ctx, s.client)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := server.Register(ctx, c, server.Namespace); err != nil {
		return err
	}
	_, err = c.WorkflowService().DescribeTaskQueue(ctx, &workflowservice.DescribeTaskQueueRequest{
		Namespace:     server.Namespace,
		TaskQueue:     &taskqueue.TaskQueue{Name: "probe"},
		TaskQueueType: enumspb.TASK_QUEUE_TYPE_WORKFLOW,
	})
	if err != nil {
		return err
	}
	_, err = c.DescribeWorkflow(ctx, "probe", "")
	var absent *serviceerror.NotFound
	if errors.As(err, &absent) {
		return nil
	}
	return err
}

// Binary returns the path of a program that .ci/temporal has built: "server" or "sql". The variables
// COVEN_TEMPORAL_SERVER and COVEN_TEMPORAL_SQL name other ones. The error is ErrMissing if there is
// none.
func Binary(name string) (string, error) {
	if file := os.Getenv("COVEN_TEMPORAL_" + strings.ToUpper(name)); file != "" {
		return file, nil
	}
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		file := filepath.Join(dir, ".tools", "temporal", name)
		if _, err := os.Stat(file); err == nil {
			return file, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", fmt.Errorf("program %s of Temporal is %w; run: .ci/temporal .tools", name, ErrMissing)
		}
		dir = parent
	}
}

// freePorts returns the first of n consecutive free ports of the loopback interface. They are below
// the range from which systems take the ports of outgoing connections, so that none of these is in
// the way of a restart.
func freePorts(n int) (int, error) {
	for range 100 {
		first := 10_000 + rand.IntN(2_000)*10
		if free(first, n) {
			return first, nil
		}
	}
	return 0, errors.New("no free ports")
}

func free(first, n int) bool {
	for port := first; port < first+n; port++ {
		l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port})
		if err != nil {
			return false
		}
		defer func() { _ = l.Close() }()
	}
	return true
}

// environment returns this process's environment without the variables that configure a Temporal
// server or client, and with others.
func environment(with ...string) []string {
	var env []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "TEMPORAL_") && !strings.HasPrefix(v, "COVEN_TEMPORAL_") {
			env = append(env, v)
		}
	}
	return append(env, with...)
}

// tail returns the end of a file.
func tail(file string) string {
	f, err := os.Open(file)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = f.Close() }()
	if end, err := f.Seek(0, io.SeekEnd); err == nil {
		_, _ = f.Seek(max(0, end-4_000), io.SeekStart)
	}
	text, _ := io.ReadAll(io.LimitReader(f, 4_000))
	return string(text)
}

// quiet is a logger that drops everything: clients log many warnings while their server is down.
type quiet struct{}

var _ log.Logger = quiet{}

func (quiet) Debug(string, ...any) {}
func (quiet) Info(string, ...any)  {}
func (quiet) Warn(string, ...any)  {}
func (quiet) Error(string, ...any) {}
