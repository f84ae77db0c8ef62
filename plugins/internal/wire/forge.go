package wire

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc"

	"github.com/coven-run/coven/plugins/forge"
	pluginv1 "github.com/coven-run/coven/plugins/internal/proto/coven/plugin/v1"
	"github.com/coven-run/coven/plugins/pluginerr"
)

// RegisterForge registers impl with a plugin's gRPC server.
func RegisterForge(s *grpc.Server, impl forge.Forge) {
	pluginv1.RegisterForgeServer(s, &forgeServer{impl: impl})
}

type forgeServer struct {
	pluginv1.UnimplementedForgeServer
	impl forge.Forge
}

func (s *forgeServer) Open(ctx context.Context, in *pluginv1.ForgeOpenRequest) (*pluginv1.ForgePullRequest, error) {
	pull, err := s.impl.Open(ctx, forge.Request{
		Repository: decodeRepository(in.GetRepository()), Head: in.GetHead(), HeadPath: in.GetHeadPath(), Base: in.GetBase(),
		Title: in.GetTitle(), Text: in.GetText(), Draft: in.GetDraft(),
	})
	if err != nil {
		return nil, toWire(err)
	}
	return encodePull(pull), nil
}

func (s *forgeServer) Poll(ctx context.Context, in *pluginv1.ForgePollRequest) (*pluginv1.ForgeReport, error) {
	query := forge.Query{Repository: decodeRepository(in.GetRepository()), Version: in.GetVersion()}
	for _, k := range in.GetKnown() {
		query.Known = append(query.Known, forge.Known{Number: int(k.GetNumber()), Version: k.GetVersion()})
	}
	report, err := s.impl.Poll(ctx, query)
	if err != nil {
		return nil, toWire(err)
	}
	l := report.Limit
	out := &pluginv1.ForgeReport{Version: valid(report.Version), Moved: valid(report.Moved), Limit: &pluginv1.ForgeLimit{
		Total: int64(l.Total), Remaining: int64(l.Remaining), ResetUnix: toUnix(l.Reset), Cost: int64(l.Cost), UntilUnix: toUnix(l.Until),
	}}
	for _, pull := range report.Changed {
		out.Changed = append(out.Changed, encodePull(pull))
	}
	return out, nil
}

func (s *forgeServer) Log(ctx context.Context, in *pluginv1.ForgeLogRequest) (*pluginv1.ForgeLogResponse, error) {
	log, err := s.impl.Log(ctx, decodeRepository(in.GetRepository()), decodeCheck(in.GetCheck()), int(in.GetLimit()))
	if err != nil {
		return nil, toWire(err)
	}
	return &pluginv1.ForgeLogResponse{Log: valid(log)}, nil
}

func (s *forgeServer) Rerun(ctx context.Context, in *pluginv1.ForgeRerunRequest) (*pluginv1.ForgeRerunResponse, error) {
	if err := s.impl.Rerun(ctx, decodeRepository(in.GetRepository()), decodeCheck(in.GetCheck())); err != nil {
		return nil, toWire(err)
	}
	return &pluginv1.ForgeRerunResponse{}, nil
}

func (s *forgeServer) Reply(ctx context.Context, in *pluginv1.ForgeReplyRequest) (*pluginv1.ForgeReplyResponse, error) {
	reply := forge.Reply{Number: int(in.GetNumber()), Comment: in.GetComment(), Text: in.GetText()}
	if err := s.impl.Reply(ctx, decodeRepository(in.GetRepository()), reply); err != nil {
		return nil, toWire(err)
	}
	return &pluginv1.ForgeReplyResponse{}, nil
}

func (s *forgeServer) Merge(ctx context.Context, in *pluginv1.ForgeMergeRequest) (*pluginv1.ForgeMergeResponse, error) {
	merge := forge.Merge{Number: int(in.GetNumber()), Head: in.GetHead(), Method: in.GetMethod()}
	commit, err := s.impl.Merge(ctx, decodeRepository(in.GetRepository()), merge)
	if err != nil {
		return nil, toWire(err)
	}
	return &pluginv1.ForgeMergeResponse{Commit: valid(commit)}, nil
}

// Forge returns a client for a forge plugin.
func Forge(conn grpc.ClientConnInterface) forge.Forge {
	return &forgeClient{rpc: pluginv1.NewForgeClient(conn)}
}

type forgeClient struct{ rpc pluginv1.ForgeClient }

// Open implements forge.Forge.
func (c *forgeClient) Open(ctx context.Context, r forge.Request) (forge.PullRequest, error) {
	wire, err := c.rpc.Open(ctx, &pluginv1.ForgeOpenRequest{
		Repository: encodeRepository(r.Repository), Head: valid(r.Head), HeadPath: valid(r.HeadPath), Base: valid(r.Base),
		Title: valid(r.Title), Text: valid(r.Text), Draft: r.Draft,
	}, grpc.MaxCallRecvMsgSize(forge.MaxAnswer))
	if err != nil {
		return forge.PullRequest{}, fromWire(ctx, err)
	}
	pull := decodePull(wire)
	if err := pull.Validate(); err != nil {
		return forge.PullRequest{}, err
	}
	return pull, nil
}

// Poll implements forge.Forge.
func (c *forgeClient) Poll(ctx context.Context, query forge.Query) (forge.Report, error) {
	if n := len(query.Known); n > forge.MaxKnown {
		return forge.Report{}, fmt.Errorf("%d pull requests in a query, the limit is %d: %w", n, forge.MaxKnown, pluginerr.ErrTooLarge)
	}
	in := &pluginv1.ForgePollRequest{Repository: encodeRepository(query.Repository), Version: valid(query.Version)}
	for _, k := range query.Known {
		in.Known = append(in.Known, &pluginv1.ForgeKnown{Number: int64(k.Number), Version: valid(k.Version)})
	}
	wire, err := c.rpc.Poll(ctx, in, grpc.MaxCallRecvMsgSize(forge.MaxAnswer))
	if err != nil {
		return forge.Report{}, fromWire(ctx, err)
	}
	l := wire.GetLimit()
	report := forge.Report{Version: wire.GetVersion(), Moved: wire.GetMoved(), Limit: forge.Limit{
		Total: int(l.GetTotal()), Remaining: int(l.GetRemaining()), Reset: fromUnix(l.GetResetUnix()), Cost: int(l.GetCost()), Until: fromUnix(l.GetUntilUnix()),
	}}
	for _, pull := range wire.GetChanged() {
		report.Changed = append(report.Changed, decodePull(pull))
	}
	if err := report.Validate(query); err != nil {
		return forge.Report{}, err
	}
	return report, nil
}

// logSlack is added to the limit of a log, for the rest of the message.
const logSlack = 4 << 10

// Log implements forge.Forge.
func (c *forgeClient) Log(ctx context.Context, repository forge.Repository, check forge.Check, limit int) (string, error) {
	in := &pluginv1.ForgeLogRequest{Repository: encodeRepository(repository), Check: encodeCheck(check), Limit: int64(limit)}
	out, err := c.rpc.Log(ctx, in, grpc.MaxCallRecvMsgSize(limit+logSlack))
	if err != nil {
		return "", fromWire(ctx, err)
	}
	if n := len(out.GetLog()); n > limit {
		return "", fmt.Errorf("log of %d bytes, the limit is %d: %w", n, limit, pluginerr.ErrInvalid)
	}
	return out.GetLog(), nil
}

// Rerun implements forge.Forge.
func (c *forgeClient) Rerun(ctx context.Context, repository forge.Repository, check forge.Check) error {
	_, err := c.rpc.Rerun(ctx, &pluginv1.ForgeRerunRequest{Repository: encodeRepository(repository), Check: encodeCheck(check)})
	return fromWire(ctx, err)
}

// Reply implements forge.Forge.
func (c *forgeClient) Reply(ctx context.Context, repository forge.Repository, r forge.Reply) error {
	_, err := c.rpc.Reply(ctx, &pluginv1.ForgeReplyRequest{
		Repository: encodeRepository(repository), Number: int64(r.Number), Comment: valid(r.Comment), Text: valid(r.Text),
	})
	return fromWire(ctx, err)
}

// Merge implements forge.Forge.
func (c *forgeClient) Merge(ctx context.Context, repository forge.Repository, m forge.Merge) (commit string, err error) {
	out, err := c.rpc.Merge(ctx, &pluginv1.ForgeMergeRequest{
		Repository: encodeRepository(repository), Number: int64(m.Number), Head: valid(m.Head), Method: valid(m.Method),
	})
	if err != nil {
		return "", fromWire(ctx, err)
	}
	if err := forge.ValidateCommit(out.GetCommit()); err != nil {
		return "", err
	}
	return out.GetCommit(), nil
}

func encodeRepository(r forge.Repository) *pluginv1.ForgeRepository {
	return &pluginv1.ForgeRepository{Host: valid(r.Host), Path: valid(r.Path), Api: valid(r.API)}
}

func decodeRepository(wire *pluginv1.ForgeRepository) forge.Repository {
	return forge.Repository{Host: wire.GetHost(), Path: wire.GetPath(), API: wire.GetApi()}
}

func encodePull(p forge.PullRequest) *pluginv1.ForgePullRequest {
	wire := &pluginv1.ForgePullRequest{
		Version: valid(p.Version), Number: int64(p.Number), Url: valid(p.URL), State: valid(string(p.State)), Draft: p.Draft,
		Head: valid(p.Head), HeadGone: p.HeadGone, Base: valid(p.Base), Mergeable: valid(string(p.Mergeable)), Queue: number(p.Queue),
		Commit: valid(p.Commit), By: valid(p.By), Changes: p.Changes, Needs: valid(p.Needs),
	}
	for _, c := range p.Checks {
		wire.Checks = append(wire.Checks, encodeCheck(c))
	}
	for _, c := range p.Comments {
		wire.Comments = append(wire.Comments, &pluginv1.ForgeComment{
			Id: valid(c.ID), By: valid(c.By), Trusted: c.Trusted, Own: c.Own, TimeUnix: toUnix(c.Time), Text: valid(c.Text),
			Path: valid(c.Path), From: number(c.From), Line: number(c.Line), Old: c.Old, Commit: valid(c.Commit),
			Resolved: c.Resolved, Answers: valid(c.Answers),
		})
	}
	return wire
}

func decodePull(wire *pluginv1.ForgePullRequest) forge.PullRequest {
	p := forge.PullRequest{
		Version: wire.GetVersion(), Number: int(wire.GetNumber()), URL: wire.GetUrl(), State: forge.State(wire.GetState()), Draft: wire.GetDraft(),
		Head: wire.GetHead(), HeadGone: wire.GetHeadGone(), Base: wire.GetBase(), Mergeable: forge.Mergeable(wire.GetMergeable()), Queue: int(wire.GetQueue()),
		Commit: wire.GetCommit(), By: wire.GetBy(), Changes: wire.GetChanges(), Needs: wire.GetNeeds(),
	}
	for _, c := range wire.GetChecks() {
		p.Checks = append(p.Checks, decodeCheck(c))
	}
	for _, c := range wire.GetComments() {
		p.Comments = append(p.Comments, forge.Comment{
			ID: c.GetId(), By: c.GetBy(), Trusted: c.GetTrusted(), Own: c.GetOwn(), Time: fromUnix(c.GetTimeUnix()), Text: c.GetText(),
			Path: c.GetPath(), From: int(c.GetFrom()), Line: int(c.GetLine()), Old: c.GetOld(), Commit: c.GetCommit(),
			Resolved: c.GetResolved(), Answers: c.GetAnswers(),
		})
	}
	return p
}

func encodeCheck(c forge.Check) *pluginv1.ForgeCheck {
	return &pluginv1.ForgeCheck{
		Id: valid(c.ID), Name: valid(c.Name), Status: valid(string(c.Status)), Required: c.Required, Url: valid(c.URL), Summary: valid(c.Summary),
	}
}

func decodeCheck(wire *pluginv1.ForgeCheck) forge.Check {
	return forge.Check{
		ID: wire.GetId(), Name: wire.GetName(), Status: forge.Status(wire.GetStatus()), Required: wire.GetRequired(), URL: wire.GetUrl(), Summary: wire.GetSummary(),
	}
}

// toUnix returns the time in seconds. The zero time is 0.
func toUnix(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Unix()
}

// fromUnix is the inverse of toUnix.
func fromUnix(seconds int64) time.Time {
	if seconds <= 0 {
		return time.Time{}
	}
	return time.Unix(seconds, 0)
}
