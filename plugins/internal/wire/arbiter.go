package wire

import (
	"context"
	"fmt"

	"google.golang.org/grpc"

	"github.com/coven-run/coven/plugins/arbiter"
	"github.com/coven-run/coven/plugins/hostservice"
	pluginv1 "github.com/coven-run/coven/plugins/internal/proto/coven/plugin/v1"
	"github.com/coven-run/coven/plugins/pluginerr"
	"github.com/coven-run/coven/plugins/reviewer"
)

// RegisterArbiter registers impl with a plugin's gRPC server; link is the connection to
// coven's services.
func RegisterArbiter(s *grpc.Server, impl arbiter.Arbiter, link *Link) {
	pluginv1.RegisterArbiterServer(s, &arbiterServer{impl: impl, link: link})
}

type arbiterServer struct {
	pluginv1.UnimplementedArbiterServer
	impl arbiter.Arbiter
	link *Link
}

func (s *arbiterServer) Decide(ctx context.Context, in *pluginv1.DecideRequest) (*pluginv1.DecideResponse, error) {
	out, err := s.impl.Decide(ctx, decodeQuestion(in), s.link.services(in.GetCall()))
	if err != nil {
		return nil, toWire(err)
	}
	return &pluginv1.DecideResponse{GoOn: out.Continue, Reason: valid(out.Reason)}, nil
}

// Arbiter returns a client for an arbiter plugin that can use services during a call.
func Arbiter(conn grpc.ClientConnInterface, services *ServiceServer) arbiter.Arbiter {
	return &arbiterClient{rpc: pluginv1.NewArbiterClient(conn), services: services}
}

type arbiterClient struct {
	rpc      pluginv1.ArbiterClient
	services *ServiceServer
}

// Decide implements arbiter.Arbiter.
func (c *arbiterClient) Decide(ctx context.Context, question arbiter.Question, host hostservice.Services) (arbiter.Decision, error) {
	token, done := c.services.Open(host)
	defer done()
	out, err := c.rpc.Decide(ctx, encodeQuestion(token, question), grpc.MaxCallRecvMsgSize(maxAnswer))
	if err != nil {
		return arbiter.Decision{}, fromWire(ctx, err)
	}
	if n := len(out.GetReason()); n > reviewer.MaxText {
		return arbiter.Decision{}, fmt.Errorf("reason of %d bytes, the limit is %d: %w", n, reviewer.MaxText, pluginerr.ErrInvalid)
	}
	return arbiter.Decision{Continue: out.GetGoOn(), Reason: out.GetReason()}, nil
}

func encodeQuestion(token string, q arbiter.Question) *pluginv1.DecideRequest {
	wire := &pluginv1.DecideRequest{
		Call: token, Task: encodeTask(q.Task), Output: valid(q.Output), Opinions: encodeOpinions(q.Opinions),
		Round: number(q.Round), MaxRounds: number(q.MaxRounds), Options: options(q.Options),
	}
	for _, r := range q.History {
		wire.History = append(wire.History, &pluginv1.Round{
			N: number(r.N), Output: valid(r.Output), Opinions: encodeOpinions(r.Opinions), Reason: valid(r.Reason),
		})
	}
	return wire
}

func decodeQuestion(wire *pluginv1.DecideRequest) arbiter.Question {
	q := arbiter.Question{
		Task: decodeTask(wire.GetTask()), Output: wire.GetOutput(), Opinions: decodeOpinions(wire.GetOpinions()),
		Round: int(wire.GetRound()), MaxRounds: int(wire.GetMaxRounds()), Options: wire.GetOptions(),
	}
	for _, r := range wire.GetHistory() {
		q.History = append(q.History, arbiter.Round{
			N: int(r.GetN()), Output: r.GetOutput(), Opinions: decodeOpinions(r.GetOpinions()), Reason: r.GetReason(),
		})
	}
	return q
}

func encodeOpinions(opinions []arbiter.Opinion) []*pluginv1.Opinion {
	var wire []*pluginv1.Opinion
	for _, o := range opinions {
		wire = append(wire, &pluginv1.Opinion{
			Reviewer: valid(o.Reviewer), Verdict: string(o.Verdict), Findings: encodeFindings(o.Findings),
		})
	}
	return wire
}

func decodeOpinions(wire []*pluginv1.Opinion) []arbiter.Opinion {
	var opinions []arbiter.Opinion
	for _, o := range wire {
		opinions = append(opinions, arbiter.Opinion{
			Reviewer: o.GetReviewer(), Verdict: reviewer.Verdict(o.GetVerdict()), Findings: decodeFindings(o.GetFindings()),
		})
	}
	return opinions
}
