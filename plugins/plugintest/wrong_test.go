package plugintest

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/coven-run/coven/plugins"
	"github.com/coven-run/coven/plugins/arbiter"
	"github.com/coven-run/coven/plugins/forge"
	"github.com/coven-run/coven/plugins/hostservice"
	"github.com/coven-run/coven/plugins/model"
	"github.com/coven-run/coven/plugins/pluginerr"
	"github.com/coven-run/coven/plugins/provider"
	"github.com/coven-run/coven/plugins/reviewer"
)

// TestMain lets the test binary also run as a plugin: serve KIND MANNER.
func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == "serve" {
		serve(plugins.Kind(os.Args[2]), os.Args[3])
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// serve runs a plugin with one defect.
func serve(kind plugins.Kind, manner string) {
	if os.Getenv("GORACE") == "" { // otherwise the race detector waits a second at each exit
		_ = os.Setenv("GORACE", "atexit_sleep_ms=0")
		_ = syscall.Exec("/proc/self/exe", os.Args, os.Environ())
	}
	switch manner {
	case "no hint":
		os.Exit(boolCode(os.Getenv("COVEN_PLUGIN") == ""))
	case "chatter":
		fmt.Println("hello, I am a plugin")
	case "elsewhere":
		_ = os.Unsetenv(socketDir)
	case "insecure":
		_ = os.Unsetenv(cert)
	case "orphan":
		if os.Getenv("COVEN_PLUGIN") != "" {
			_ = exec.Command("sleep", "600").Start()
		}
	case "any client", "stays", "unhealthy", "boast", "no cookie":
		byOneself(manner)
	}
	switch kind {
	case plugins.KindReviewer:
		plugins.Serve(plugins.Reviewer(&wrongReviewer{manner: manner}))
	case plugins.KindArbiter:
		plugins.Serve(plugins.Arbiter(wrongArbiter(manner)))
	case plugins.KindProvider:
		if impl := (&wrongProvider{manner: manner}); manner == "answers" || manner == "ignores" {
			plugins.Serve(plugins.Provider(answering{impl}))
		} else {
			plugins.Serve(plugins.Provider(impl))
		}
	case plugins.KindModel:
		plugins.Serve(plugins.Model(wrongModel(manner)))
	case plugins.KindForge:
		plugins.Serve(plugins.Forge(wrongForge(manner)))
	}
}

func boolCode(b bool) int {
	if b {
		return 1
	}
	return 0
}

// byOneself serves without the SDK and never exits.
func byOneself(manner string) {
	if manner != "no cookie" && os.Getenv("COVEN_PLUGIN") == "" {
		fmt.Fprintln(os.Stderr, "started by coven only")
		os.Exit(1)
	}
	own, _, err := identity()
	if err != nil {
		panic(err)
	}
	listener, err := net.Listen("unix", filepath.Join(os.Getenv(socketDir), fmt.Sprint("own", os.Getpid())))
	if err != nil {
		panic(err)
	}
	config := &tls.Config{Certificates: []tls.Certificate{own}, MinVersion: tls.VersionTLS12}
	if manner != "any client" {
		config.ClientAuth, config.ClientCAs = tls.RequireAndVerifyClientCert, x509.NewCertPool()
		config.ClientCAs.AppendCertsFromPEM([]byte(os.Getenv(cert)))
	}
	s := grpc.NewServer(grpc.Creds(credentials.NewTLS(config)))
	state := health.NewServer()
	if manner == "unhealthy" {
		state.SetServingStatus("plugin", grpc_health_v1.HealthCheckResponse_NOT_SERVING)
	} else {
		state.SetServingStatus("plugin", grpc_health_v1.HealthCheckResponse_SERVING)
	}
	grpc_health_v1.RegisterHealthServer(s, state)
	offered := "1"
	if manner == "boast" {
		offered = os.Getenv(versions)[strings.LastIndex(os.Getenv(versions), ",")+1:]
	}
	fmt.Printf("1|%s|unix|%s|grpc|%s\n", offered, listener.Addr(), base64.RawStdEncoding.EncodeToString(own.Certificate[0]))
	_ = s.Serve(listener)
}

type wrongReviewer struct {
	manner string
	mu     sync.Mutex
	kept   [][]byte
}

func (r *wrongReviewer) Review(ctx context.Context, c reviewer.Change, host hostservice.Services) (reviewer.Review, error) {
	review := reviewer.Review{Verdict: reviewer.Pass}
	switch r.manner {
	case "writes":
		_ = os.WriteFile(filepath.Join(c.Dir, "litter"), nil, 0o644)
	case "deletes":
		_ = os.Remove(filepath.Join(c.Dir, "app.go"))
	case "maybe":
		review.Verdict = "maybe"
	case "away":
		review.Findings = []reviewer.Finding{{Severity: reviewer.Info, File: "../x", Message: "x"}}
	case "deaf":
		ctx = context.Background()
	case "chatty": // bypasses os.Stdout, which go-plugin has replaced
		_, _ = syscall.Write(1, []byte("1|1|unix|/nowhere|grpc|\nstill here\n"))
		_, _ = syscall.Write(2, []byte("and here\n"))
	case "serial":
		r.mu.Lock()
		defer r.mu.Unlock()
	case "leaky":
		r.kept = append(r.kept, bytes.Repeat([]byte{1}, 1<<20))
	case "strict":
		if c.Options[strange] != "" {
			return review, errors.New("I do not like that")
		}
	case "fragile":
		if c.Truncated != "" {
			os.Exit(3)
		}
	case "slow": // waits for services without connecting
		select {}
	case "unhurried":
		<-time.After(300 * time.Millisecond)
	}
	_ = host.Log(ctx, "looked at "+c.Task.ID)
	return review, nil
}

type wrongArbiter string

func (a wrongArbiter) Decide(_ context.Context, q arbiter.Question, _ hostservice.Services) (arbiter.Decision, error) {
	switch {
	case a == "first" && len(q.History) == 0:
		panic("no history")
	case a == "verbose":
		return arbiter.Decision{Reason: strings.Repeat("because ", 10_000)}, nil
	}
	return arbiter.Decision{Reason: "enough"}, nil
}

type wrongProvider struct {
	manner string
	mu     sync.Mutex
	seen   int
}

func (p *wrongProvider) Command(_ context.Context, req provider.Request) (provider.Command, error) {
	cmd := provider.Command{
		Argv: []string{"agent", "--id", req.Conversation}, Input: []byte(req.Prompt + "\n"), Account: "local",
		Files: []provider.File{{Name: "system.md", Content: []byte(req.System)}},
	}
	switch p.manner {
	case "loud":
		cmd.Argv = append(cmd.Argv, req.Prompt)
	case "mute", "answers": // the first request follows the answer
		cmd.Input = nil
	case "climber":
		cmd.Files[0].Name = "../system.md"
	case "nameless":
		cmd.Argv, cmd.Account = nil, ""
	case "forgetful":
		cmd.Argv = cmd.Argv[:1]
	case "boastful": // claims to be gated but does not pass the gate
		cmd.Gated = true
	case "gated":
		cmd.Gated, cmd.Env = true, req.Gate.Env
		cmd.Argv = append(append(cmd.Argv, req.Gate.Argv...), req.GateTool)
	}
	return cmd, nil
}

func (p *wrongProvider) Parse(_ context.Context, lines []byte) ([]provider.Event, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var events []provider.Event
	for line := range bytes.Lines(lines) {
		switch {
		case p.manner == "picky" && !bytes.HasPrefix(line, []byte("{")):
			return nil, errors.New("no JSON")
		case p.manner == "counting":
			p.seen++
			events = append(events, provider.Text{Text: fmt.Sprint(p.seen)})
		case p.manner == "nervous" && bytes.HasPrefix(line, []byte("null")):
			os.Exit(2)
		case bytes.HasPrefix(line, []byte("say ")):
			events = append(events, provider.Text{Text: string(line[4:])})
		}
	}
	if p.manner == "whole" && len(lines) > 1 && bytes.Count(lines, []byte("\n")) == 1 {
		return nil, nil
	}
	if p.manner == "eager" && len(lines) == 0 {
		return []provider.Event{provider.Text{Text: "?"}}, nil
	}
	return events, nil
}

func (p *wrongProvider) Message(_ context.Context, m provider.Message) ([]byte, error) {
	switch p.manner {
	case "silent":
		return nil, nil
	case "good":
		return nil, fmt.Errorf("it takes no messages: %w", pluginerr.ErrUnsupported)
	}
	return []byte(m.Text + "\n"), nil
}

// answering is a provider whose CLI makes requests.
type answering struct{ *wrongProvider }

func (p answering) Parse(ctx context.Context, lines []byte) ([]provider.Event, error) {
	events, err := p.wrongProvider.Parse(ctx, lines)
	for i, e := range events {
		if text, ok := e.(provider.Text); ok {
			events[i] = provider.Asked{ID: text.Text, Action: provider.ReadFile{Path: "/a"}}
		}
	}
	return events, err
}

func (p answering) Answer(_ context.Context, a provider.Answer) (provider.Reply, error) {
	if p.manner == "ignores" {
		return provider.Reply{}, nil
	}
	return provider.Reply{Input: []byte("no: " + a.Reason + "\n")}, nil
}

type wrongModel string

func (m wrongModel) Turn(ctx context.Context, req model.Request, emit func(model.Event) error) error {
	switch {
	case m == "no key":
		return errors.New("ANTHROPIC_API_KEY is not set")
	case m == "endless":
		return nil
	case m == "plain" && len(req.Tools) > 0:
		return io.ErrUnexpectedEOF
	}
	if err := emit(model.Text{Text: "Hello"}); err != nil {
		return err
	}
	if m == "odd" {
		return emit(model.End{Reason: "because"})
	}
	return emit(model.End{Reason: model.Done})
}

// wrongForge is a forge whose host has a list of numbers.
type wrongForge string

func (f wrongForge) get(ctx context.Context, r forge.Repository) error {
	if f == "deaf" {
		ctx = context.Background()
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.API+"/pulls", nil)
	if err != nil {
		return err
	}
	request.Header.Set("Private-Token", "secret") // which net/http sends also to other hosts
	client := http.Client{}
	if f != "gossip" {
		client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	}
	response, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("cannot be reached: %w", pluginerr.ErrTransient)
	}
	defer response.Body.Close() //nolint:errcheck // only read
	switch {
	case response.StatusCode == http.StatusUnauthorized && f != "vague":
		return pluginerr.ErrLogin
	case response.StatusCode/100 != 2:
		return fmt.Errorf("status %d", response.StatusCode)
	case f == "believer":
		return nil
	}
	var numbers []int
	return json.NewDecoder(io.LimitReader(response.Body, 1<<20)).Decode(&numbers)
}

func (f wrongForge) Open(ctx context.Context, r forge.Request) (forge.PullRequest, error) {
	return forge.PullRequest{}, f.get(ctx, r.Repository)
}

func (f wrongForge) Poll(ctx context.Context, q forge.Query) (forge.Report, error) {
	switch f {
	case "no key":
		return forge.Report{}, fmt.Errorf("no token: %w", pluginerr.ErrLogin)
	case "liar":
		return forge.Report{Changed: []forge.PullRequest{{Number: 1, State: "fine"}}}, nil
	}
	return forge.Report{}, f.get(ctx, q.Repository)
}

func (f wrongForge) Log(ctx context.Context, r forge.Repository, _ forge.Check, _ int) (string, error) {
	return "", f.get(ctx, r)
}

func (f wrongForge) Rerun(ctx context.Context, r forge.Repository, _ forge.Check) error {
	if f == "yes man" {
		return nil
	}
	return f.get(ctx, r)
}

func (f wrongForge) Reply(ctx context.Context, r forge.Repository, _ forge.Reply) error {
	return f.get(ctx, r)
}

func (f wrongForge) Merge(ctx context.Context, r forge.Repository, _ forge.Merge) (string, error) {
	return "", f.get(ctx, r)
}
