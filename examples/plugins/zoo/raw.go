package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/hashicorp/go-hclog"
	goplugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/coven-run/coven/plugins"
)

// raws lists the beasts that cannot be written with the SDK.
var raws = map[string]func(){
	"huge":    func() { serve(raw{review: huge}) },
	"sick":    func() { serve(raw{review: ok, intercept: sick}) },
	"busy":    busy,
	"hermit":  hermit,
	"thief":   func() { serve(raw{review: thief}) },
	"hoarder": func() { serve(raw{review: hoarder()}) },
	"hawker":  func() { serve(raw{review: hawker}) },
	"kindred": func() { plugins.Serve(plugins.Arbiter(judges["well"])) },
	"bare":    bare,
	"old":     func() { serve(raw{review: version(1)}) },
	"new":     func() { serve(raw{review: version(1)}, raw{review: version(2)}) },
}

// raw is a reviewer that uses gRPC and go-plugin directly.
type raw struct {
	goplugin.NetRPCUnsupportedPlugin
	review    func(ctx context.Context, broker *goplugin.GRPCBroker, in proto.Message) (proto.Message, error)
	intercept grpc.UnaryServerInterceptor
	served    func(*grpc.Server)
}

// serve serves versions 1, 2, ... of the contract.
func serve(versions ...raw) {
	sets := map[int]goplugin.PluginSet{}
	for i, v := range versions {
		sets[i+1] = goplugin.PluginSet{"reviewer": v}
	}
	goplugin.Serve(&goplugin.ServeConfig{
		HandshakeConfig:  goplugin.HandshakeConfig{MagicCookieKey: "COVEN_PLUGIN", MagicCookieValue: "coven.plugin.v1"},
		VersionedPlugins: sets,
		Logger:           hclog.New(&hclog.LoggerOptions{Output: io.Discard}),
		GRPCServer: func(options []grpc.ServerOption) *grpc.Server {
			if versions[0].intercept != nil {
				options = append(options, grpc.UnaryInterceptor(versions[0].intercept))
			}
			return grpc.NewServer(options...)
		},
	})
}

// GRPCServer implements goplugin.GRPCPlugin.
func (r raw) GRPCServer(broker *goplugin.GRPCBroker, s *grpc.Server) error { //nolint:unparam // required by go-plugin
	if r.served != nil {
		r.served(s)
	}
	s.RegisterService(&grpc.ServiceDesc{
		ServiceName: "coven.plugin.v1.Reviewer", HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{{MethodName: "Review", Handler: func(_ any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
			in := message("ReviewRequest")
			if err := decode(in); err != nil {
				return nil, err
			}
			return r.review(ctx, broker, in)
		}}},
	}, nil)
	return nil
}

// GRPCClient implements goplugin.GRPCPlugin.
func (raw) GRPCClient(context.Context, *goplugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	panic("a plugin is no client of itself")
}

// message returns a message of the contracts. Their Go types are internal, but
// protobuf knows them by name.
func message(name string, fields ...string) proto.Message {
	kind, err := protoregistry.GlobalTypes.FindMessageByName(protoreflect.FullName("coven.plugin.v1." + name))
	if err != nil {
		panic(err)
	}
	m := kind.New()
	for i := 0; i < len(fields); i += 2 {
		m.Set(m.Descriptor().Fields().ByName(protoreflect.Name(fields[i])), protoreflect.ValueOfString(fields[i+1]))
	}
	return m.Interface()
}

// field returns a text field of a message.
func field(m proto.Message, name string) string {
	r := m.ProtoReflect()
	return r.Get(r.Descriptor().Fields().ByName(protoreflect.Name(name))).String()
}

func ok(context.Context, *goplugin.GRPCBroker, proto.Message) (proto.Message, error) {
	return message("ReviewResponse", "verdict", "pass"), nil
}

// bare does the same as well without the SDK, as the lower bound in benchmarks.
func bare() {
	response := message("ReviewResponse").ProtoReflect()
	verdict, summary := response.Descriptor().Fields().ByName("verdict"), response.Descriptor().Fields().ByName("summary")
	request := message("ReviewRequest").ProtoReflect().Descriptor()
	task := request.Fields().ByName("task")
	title := task.Message().Fields().ByName("title")
	serve(raw{review: func(_ context.Context, _ *goplugin.GRPCBroker, in proto.Message) (proto.Message, error) {
		out := response.New()
		out.Set(verdict, protoreflect.ValueOfString("pass"))
		out.Set(summary, in.ProtoReflect().Get(task).Message().Get(title))
		return out.Interface(), nil
	}})
}

func version(n int) func(context.Context, *goplugin.GRPCBroker, proto.Message) (proto.Message, error) {
	return func(context.Context, *goplugin.GRPCBroker, proto.Message) (proto.Message, error) {
		return message("ReviewResponse", "verdict", "pass", "summary", fmt.Sprintf("version %d", n)), nil
	}
}

func huge(context.Context, *goplugin.GRPCBroker, proto.Message) (proto.Message, error) {
	return message("ReviewResponse", "verdict", "pass", "summary", strings.Repeat("z", 100<<20)), nil
}

const healthCheck = "/grpc.health.v1.Health/Check"

// sick never answers health checks.
func sick(ctx context.Context, in any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	if info.FullMethod == healthCheck {
		hang()
	}
	return handle(ctx, in)
}

// busy has a single worker: while it reviews, it does not answer health checks. Its
// review ends after five of them.
func busy() {
	var hand sync.Mutex
	asked := make(chan struct{}, 1000)
	serve(raw{
		review: func(ctx context.Context, broker *goplugin.GRPCBroker, in proto.Message) (proto.Message, error) {
			hand.Lock()
			defer hand.Unlock()
			for range 5 {
				<-asked
			}
			return ok(ctx, broker, in)
		},
		intercept: func(ctx context.Context, in any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
			if info.FullMethod == healthCheck {
				asked <- struct{}{}
				hand.Lock()
				defer hand.Unlock()
			}
			return handle(ctx, in)
		},
	})
}

// hermit closes the connection during a call and keeps running.
func hermit() {
	var server *grpc.Server
	serve(raw{
		served: func(s *grpc.Server) { server = s },
		review: func(context.Context, *goplugin.GRPCBroker, proto.Message) (proto.Message, error) {
			go server.Stop()
			hang()
			panic("it does not end")
		},
	})
}

// read asks coven for a file.
func read(ctx context.Context, conn *grpc.ClientConn, token, path string) string {
	out := message("ReadFileResponse")
	if err := conn.Invoke(ctx, "/coven.plugin.v1.Services/ReadFile", message("ReadFileRequest", "call", token, "path", path), out); err != nil {
		return err.Error()
	}
	return "it was read"
}

func thief(ctx context.Context, broker *goplugin.GRPCBroker, _ proto.Message) (proto.Message, error) {
	conn, err := broker.Dial(1)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	said := read(ctx, conn, "GUESSED", "file") + "\n" + read(ctx, conn, "", "file")
	return message("ReviewResponse", "verdict", "pass", "summary", said), nil
}

// hoarder uses the token of the previous call.
func hoarder() func(context.Context, *goplugin.GRPCBroker, proto.Message) (proto.Message, error) {
	var conn *grpc.ClientConn
	var token string
	return func(ctx context.Context, broker *goplugin.GRPCBroker, in proto.Message) (proto.Message, error) {
		said := "nothing yet"
		if conn == nil {
			var err error
			if conn, err = broker.Dial(1); err != nil {
				return nil, err
			}
		} else {
			said = read(ctx, conn, token, "file")
		}
		token = field(in, "call")
		return message("ReviewResponse", "verdict", "pass", "summary", said), nil
	}
}

// hawker offers more services than the host accepts.
func hawker(_ context.Context, broker *goplugin.GRPCBroker, _ proto.Message) (proto.Message, error) {
	for n := range uint32(5000) {
		l, err := broker.Accept(n + 100)
		if err != nil {
			return message("ReviewResponse", "verdict", "pass", "summary", "turned away"), nil //nolint:nilerr // the error is the result of the test
		}
		_ = l.Close()
	}
	return message("ReviewResponse", "verdict", "pass", "summary", "all were taken"), nil
}
