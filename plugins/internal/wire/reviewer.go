package wire

import (
	"context"
	"fmt"

	"google.golang.org/grpc"

	"github.com/coven-run/coven/plugins/hostservice"
	pluginv1 "github.com/coven-run/coven/plugins/internal/proto/coven/plugin/v1"
	"github.com/coven-run/coven/plugins/reviewer"
)

// RegisterReviewer registers impl with a plugin's gRPC server. link is the connection to coven's services.
func RegisterReviewer(s *grpc.Server, impl reviewer.Reviewer, link *Link) {
	pluginv1.RegisterReviewerServer(s, &reviewerServer{impl: impl, link: link})
}

type reviewerServer struct {
	pluginv1.UnimplementedReviewerServer
	impl reviewer.Reviewer
	link *Link
}

func (s *reviewerServer) Review(ctx context.Context, in *pluginv1.ReviewRequest) (*pluginv1.ReviewResponse, error) {
	out, err := s.impl.Review(ctx, decodeChange(in), s.link.services(in.GetCall()))
	if err != nil {
		return nil, toWire(err)
	}
	return encodeReview(out), nil
}

// Reviewer returns a client for a reviewer plugin that can use services during a call. The client validates
// every review with reviewer.Review.Check.
func Reviewer(conn grpc.ClientConnInterface, services *ServiceServer) reviewer.Reviewer {
	return &reviewerClient{rpc: pluginv1.NewReviewerClient(conn), services: services}
}

type reviewerClient struct {
	rpc      pluginv1.ReviewerClient
	services *ServiceServer
}

// Review implements reviewer.Reviewer.
func (c *reviewerClient) Review(ctx context.Context, change reviewer.Change, host hostservice.Services) (reviewer.Review, error) {
	token, done := c.services.Open(host)
	defer done()
	out, err := c.rpc.Review(ctx, encodeChange(token, change), grpc.MaxCallRecvMsgSize(maxAnswer))
	if err != nil {
		return reviewer.Review{}, fromWire(ctx, err)
	}
	review := decodeReview(out)
	if err := review.Check(); err != nil {
		return reviewer.Review{}, fmt.Errorf("its review: %w", err)
	}
	return review, nil
}

func encodeTask(t reviewer.Task) *pluginv1.Task {
	return &pluginv1.Task{Id: valid(t.ID), Title: valid(t.Title), Description: valid(t.Description), Acceptance: valids(t.Acceptance)}
}

func decodeTask(t *pluginv1.Task) reviewer.Task {
	return reviewer.Task{ID: t.GetId(), Title: t.GetTitle(), Description: t.GetDescription(), Acceptance: t.GetAcceptance()}
}

func encodeFindings(findings []reviewer.Finding) []*pluginv1.Finding {
	var wire []*pluginv1.Finding
	for _, f := range findings {
		wire = append(wire, &pluginv1.Finding{
			Severity: valid(string(f.Severity)), File: valid(f.File), Line: number(f.Line),
			Message: valid(f.Message), Suggestion: valid(f.Suggestion),
		})
	}
	return wire
}

func decodeFindings(wire []*pluginv1.Finding) []reviewer.Finding {
	var findings []reviewer.Finding
	for _, f := range wire {
		findings = append(findings, reviewer.Finding{
			Severity: reviewer.Severity(f.GetSeverity()), File: f.GetFile(), Line: int(f.GetLine()),
			Message: f.GetMessage(), Suggestion: f.GetSuggestion(),
		})
	}
	return findings
}

func encodeChange(token string, c reviewer.Change) *pluginv1.ReviewRequest {
	wire := &pluginv1.ReviewRequest{
		Call: token, Task: encodeTask(c.Task), Diff: valid(c.Diff), Truncated: valid(c.Truncated), Dir: valid(c.Dir),
		Base: c.Base, Tree: c.Tree, Round: number(c.Round), Previous: encodeFindings(c.Previous), Options: options(c.Options),
	}
	for _, f := range c.Files {
		wire.Files = append(wire.Files, &pluginv1.ChangedFile{
			Path: valid(f.Path), From: valid(f.From), Status: f.Status, Binary: f.Binary, Added: number(f.Added), Deleted: number(f.Deleted),
		})
	}
	return wire
}

func decodeChange(wire *pluginv1.ReviewRequest) reviewer.Change {
	c := reviewer.Change{
		Task: decodeTask(wire.GetTask()), Diff: wire.GetDiff(), Truncated: wire.GetTruncated(), Dir: wire.GetDir(),
		Base: wire.GetBase(), Tree: wire.GetTree(), Round: int(wire.GetRound()), Previous: decodeFindings(wire.GetPrevious()),
		Options: wire.GetOptions(),
	}
	for _, f := range wire.GetFiles() {
		c.Files = append(c.Files, reviewer.File{
			Path: f.GetPath(), From: f.GetFrom(), Status: f.GetStatus(), Binary: f.GetBinary(), Added: int(f.GetAdded()), Deleted: int(f.GetDeleted()),
		})
	}
	return c
}

func encodeReview(r reviewer.Review) *pluginv1.ReviewResponse {
	return &pluginv1.ReviewResponse{
		Verdict: valid(string(r.Verdict)), Findings: encodeFindings(r.Findings), Suggestions: valids(r.Suggestions), Summary: valid(r.Summary),
	}
}

func decodeReview(wire *pluginv1.ReviewResponse) reviewer.Review {
	return reviewer.Review{
		Verdict: reviewer.Verdict(wire.GetVerdict()), Findings: decodeFindings(wire.GetFindings()), Suggestions: wire.GetSuggestions(), Summary: wire.GetSummary(),
	}
}
