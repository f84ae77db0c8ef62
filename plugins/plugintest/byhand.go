package plugintest

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/protobuf/types/known/emptypb"
)

// byHand returns the cases in which the suite itself starts the plugin to test the protocol below the
// contracts.
func byHand() []testcase {
	return []testcase{
		{"cookie", "if started without COVEN_PLUGIN, the plugin prints what it is and exits with a non-zero code", testCookie},
		{"handshake", "the first line on standard output is a valid handshake", testHandshake},
		{"version", "the plugin selects an offered version that it supports", choosesVersion},
		{"tls", "the plugin accepts only the certificate that it was started with", wantsTLS},
		{"health", "the health service returns SERVING for \"plugin\"", isHealthy},
		{"shutdown", "after Shutdown, the plugin exits within 2 seconds and leaves no process and no socket", shutsDown},
	}
}

func testCookie(ctx context.Context, s *suite) error {
	p, err := s.launch(ctx)
	if err != nil {
		return err
	}
	defer s.end(p)
	line, _, err := p.line(ctx, s.options.ready())
	if err == nil {
		err = p.ended(ctx, s.options.ready())
	}
	switch {
	case err != nil:
		return err
	case p.code == 0:
		return errors.New("exit code is 0")
	case strings.HasPrefix(line, "1|"):
		return fmt.Errorf("printed a handshake: %s", quoted(line))
	case strings.TrimSpace(line) == "" && p.said() == "":
		return errors.New("no output: print what the plugin is for users who start it")
	}
	return nil
}

// served is a running plugin that the suite started.
type served struct {
	*process
	answered
	own tls.Certificate
}

// serve starts the plugin and reads its handshake.
func (s *suite) serve(ctx context.Context, offered string) (*served, error) {
	own, text, err := identity()
	if err != nil {
		return nil, err
	}
	p, err := s.launch(ctx, cookie, versions+"="+offered, cert+"="+text)
	if err != nil {
		return nil, err
	}
	line, ok, err := p.line(ctx, s.options.ready())
	if err == nil && !ok {
		if err = p.ended(ctx, s.options.ready()); err == nil {
			err = fmt.Errorf("exit code %d without a handshake line%s", p.code, p.said())
		}
	}
	var read answered
	if err == nil {
		read, err = readLine(line, s.home.sockets)
	}
	if err != nil {
		s.end(p)
		return nil, err
	}
	return &served{p, read, own}, nil
}

// serving starts the plugin for a case that does not test the start.
func (s *suite) serving(ctx context.Context) (*served, error) {
	if !s.passed("handshake") {
		return nil, skipf("the plugin does not start")
	}
	return s.serve(ctx, "1")
}

// passed reports whether the case with the name passed.
func (s *suite) passed(name string) bool {
	for _, r := range s.results {
		if r.Name == name {
			return r.Status == Passed
		}
	}
	return false
}

func testHandshake(ctx context.Context, s *suite) error {
	p, err := s.serve(ctx, "1")
	if err != nil {
		return err
	}
	defer s.end(p.process)
	if p.version != "1" {
		return fmt.Errorf("selects version %s, but 1 was offered", p.version)
	}
	return nil
}

func choosesVersion(ctx context.Context, s *suite) error {
	if !s.passed("handshake") {
		return skipf("the plugin does not start")
	}
	p, err := s.serve(ctx, "1,9999")
	if err != nil {
		return fmt.Errorf("offered 1 and 9999: %w", err)
	}
	s.end(p.process)
	if p.version != "1" {
		return fmt.Errorf("selects version %s of 1 and 9999", p.version)
	}
	if p, err = s.serve(ctx, "9999"); err != nil {
		return nil //nolint:nilerr // refusing to start is correct
	}
	s.end(p.process)
	if p.version == "9999" {
		return errors.New("selects version 9999 if only that is offered")
	}
	return nil
}

// dialTime is the timeout of a connection and a health check.
const dialTime = 20 * time.Second

// askHealth returns an error unless the health service reports SERVING. It closes conn.
func askHealth(ctx context.Context, conn *grpc.ClientConn) error {
	defer conn.Close() //nolint:errcheck // nothing was written
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	got, err := grpc_health_v1.NewHealthClient(conn).Check(ctx, &grpc_health_v1.HealthCheckRequest{Service: "plugin"})
	if err != nil {
		return err
	}
	if got.GetStatus() != grpc_health_v1.HealthCheckResponse_SERVING {
		return fmt.Errorf("the health of \"plugin\" is %v, not SERVING", got.GetStatus())
	}
	return nil
}

func wantsTLS(ctx context.Context, s *suite) error {
	p, err := s.serving(ctx)
	if err != nil {
		return err
	}
	defer s.end(p.process)
	other, _, err := identity()
	if err != nil {
		return err
	}
	for who, own := range map[string]*tls.Certificate{"without TLS": nil, "with a certificate of its own making": &other} {
		conn, err := p.dial(own)
		if err != nil {
			return err
		}
		if askHealth(ctx, conn) == nil {
			return fmt.Errorf("accepts a client %s", who)
		}
	}
	conn, err := p.dial(&p.own)
	if err != nil {
		return err
	}
	if err := askHealth(ctx, conn); err != nil {
		return fmt.Errorf("rejects the client certificate from its environment: %w", err)
	}
	return nil
}

func isHealthy(ctx context.Context, s *suite) error {
	p, err := s.serving(ctx)
	if err != nil {
		return err
	}
	defer s.end(p.process)
	conn, err := p.dial(&p.own)
	if err != nil {
		return err
	}
	return askHealth(ctx, conn)
}

func shutsDown(ctx context.Context, s *suite) error {
	p, err := s.serving(ctx)
	if err != nil {
		return err
	}
	defer s.end(p.process)
	conn, err := p.dial(&p.own)
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // nothing was written
	within, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	// The answer may be lost because the plugin exits.
	said := conn.Invoke(within, "/plugin.GRPCController/Shutdown", &emptypb.Empty{}, &emptypb.Empty{})
	if err := p.ended(ctx, s.options.end()); err != nil {
		if said != nil {
			err = fmt.Errorf("%w; error of Shutdown: %w", err, said)
		}
		return err
	}
	return s.leaves(ctx)
}

// leaves returns an error if the plugin left a process or a socket behind.
func (s *suite) leaves(ctx context.Context) error {
	var pids []int
	var unseen error
	gone := s.soon(ctx, func() bool {
		pids, unseen = marked(s.home.mark())
		return len(pids) == 0 && len(s.home.left()) == 0
	})
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case !gone && len(s.home.left()) > 0:
		return fmt.Errorf("left %s in the socket directory", strings.Join(s.home.left(), ", "))
	case !gone:
		return fmt.Errorf("left processes: %v", pids)
	case unseen != nil:
		return skipf("exited and left no socket; %v", unseen)
	}
	return nil
}
