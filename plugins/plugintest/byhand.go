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

// byHand are the cases in which the suite itself is the one that starts the plugin:
// of the protocol below the contracts.
func byHand() []testcase {
	return []testcase{
		{"cookie", "started by hand, without COVEN_PLUGIN in its environment, it says what it is and ends with an exit code other than 0", refusesHands},
		{"handshake", "its first line on standard output says where and how it serves", shakesHands},
		{"version", "of the versions that coven offers it takes one that it knows, and never one that it does not", choosesVersion},
		{"tls", "it speaks only to who holds the certificate that it was started with", wantsTLS},
		{"health", "its health service says of \"plugin\" that it serves", isHealthy},
		{"shutdown", "asked to end, it has ended by itself within 2 seconds, and has left no process and no socket", shutsDown},
	}
}

func refusesHands(ctx context.Context, s *suite) error {
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
		return errors.New("its exit code is 0")
	case strings.HasPrefix(line, "1|"):
		return fmt.Errorf("it printed a handshake: %s", quoted(line))
	case strings.TrimSpace(line) == "" && p.said() == "":
		return errors.New("it printed nothing: a person who runs it would like to know what it is")
	}
	return nil
}

// served is a plugin that was started by hand and serves.
type served struct {
	*process
	answered
	own tls.Certificate
}

// serve starts the plugin and reads its line.
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
			err = fmt.Errorf("it ended with exit code %d and printed no line%s", p.code, p.said())
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

// serving starts the plugin for a case about something else than its start.
func (s *suite) serving(ctx context.Context) (*served, error) {
	if !s.passed("handshake") {
		return nil, skipf("it does not start")
	}
	return s.serve(ctx, "1")
}

// passed reports whether a case passed.
func (s *suite) passed(name string) bool {
	for _, r := range s.results {
		if r.Name == name {
			return r.Status == Passed
		}
	}
	return false
}

func shakesHands(ctx context.Context, s *suite) error {
	p, err := s.serve(ctx, "1")
	if err != nil {
		return err
	}
	defer s.end(p.process)
	if p.version != "1" {
		return fmt.Errorf("it takes version %s, and 1 was offered", p.version)
	}
	return nil
}

func choosesVersion(ctx context.Context, s *suite) error {
	if !s.passed("handshake") {
		return skipf("it does not start")
	}
	p, err := s.serve(ctx, "1,9999")
	if err != nil {
		return fmt.Errorf("offered 1 and 9999: %w", err)
	}
	s.end(p.process)
	if p.version != "1" {
		return fmt.Errorf("offered 1 and 9999, it takes %s", p.version)
	}
	if p, err = s.serve(ctx, "9999"); err != nil {
		return nil //nolint:nilerr // that it does not start is an answer, too
	}
	s.end(p.process)
	if p.version == "9999" {
		return errors.New("offered 9999 alone, it takes it")
	}
	return nil
}

// dialTime bounds how long a connection may take.
const dialTime = 20 * time.Second

// askHealth asks a connection for the health of "plugin".
func askHealth(ctx context.Context, conn *grpc.ClientConn) error {
	defer conn.Close() //nolint:errcheck // nothing was written
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	got, err := grpc_health_v1.NewHealthClient(conn).Check(ctx, &grpc_health_v1.HealthCheckRequest{Service: "plugin"})
	if err != nil {
		return err
	}
	if got.GetStatus() != grpc_health_v1.HealthCheckResponse_SERVING {
		return fmt.Errorf("the health of \"plugin\" is %v and not SERVING", got.GetStatus())
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
			return fmt.Errorf("it answers who connects %s", who)
		}
	}
	conn, err := p.dial(&p.own)
	if err != nil {
		return err
	}
	if err := askHealth(ctx, conn); err != nil {
		return fmt.Errorf("it does not answer who holds the certificate that it was given: %w", err)
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
	// The answer may be lost: the plugin ends meanwhile.
	said := conn.Invoke(within, "/plugin.GRPCController/Shutdown", &emptypb.Empty{}, &emptypb.Empty{})
	if err := p.ended(ctx, s.options.end()); err != nil {
		if said != nil {
			err = fmt.Errorf("%w; Shutdown said: %w", err, said)
		}
		return err
	}
	return s.leaves(ctx)
}

// leaves says what the plugin has left, once its process has ended.
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
		return fmt.Errorf("it has left %s in the directory for sockets", strings.Join(s.home.left(), ", "))
	case !gone:
		return fmt.Errorf("it has left processes: %v", pids)
	case unseen != nil:
		return skipf("it has ended and left no socket; %v", unseen)
	}
	return nil
}
