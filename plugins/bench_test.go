package plugins_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	goplugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"github.com/coven-run/coven/plugins"
	pluginv1 "github.com/coven-run/coven/plugins/internal/proto/coven/plugin/v1"
	"github.com/coven-run/coven/plugins/reviewer"
)

// small is a change of a few lines.
func small() reviewer.Change {
	change := titled("a small change")
	change.Dir, change.Base, change.Tree = "/repo/tree", strings.Repeat("a", 40), strings.Repeat("b", 40)
	change.Diff = "--- a/main.go\n+++ b/main.go\n@@ -1,20 +1,20 @@\n" + strings.Repeat("-\told line of code\n+\tnew line of code\n", 20)
	change.Files = []reviewer.File{{Path: "main.go", Status: "M", Added: 20, Deleted: 20}}
	return change
}

// What a review by a plugin takes that answers at once. x/bare is beside the same
// messages over go-plugin alone, with a plugin that has nothing of our SDK, by
// turns; both speak TLS.
func BenchmarkCall(b *testing.B) {
	c := newCage(b)
	host, err := c.host.Reviewer(b.Context(), "well")
	must(b, err)
	bare := pluginv1.NewReviewerClient(goPlugin(b, c))
	change := small()
	request := &pluginv1.ReviewRequest{
		Task: &pluginv1.Task{Id: change.Task.ID, Title: change.Task.Title}, Diff: change.Diff, Dir: change.Dir, Base: change.Base,
		Tree: change.Tree, Round: 1, Call: strings.Repeat("t", 26),
		Files: []*pluginv1.ChangedFile{{Path: "main.go", Status: "M", Added: 20, Deleted: 20}},
	}
	var ours, theirs []time.Duration
	for b.Loop() {
		begun := time.Now()
		got, err := host.Review(b.Context(), change, nil)
		between := time.Now()
		if err != nil || got.Summary != change.Task.Title {
			b.Fatal(got, err)
		}
		asked := time.Now()
		answer, err := bare.Review(b.Context(), request)
		theirs, ours = append(theirs, time.Since(asked)), append(ours, between.Sub(begun))
		if err != nil || answer.GetSummary() != change.Task.Title {
			b.Fatal(answer, err)
		}
	}
	b.ReportMetric(float64(median(ours).Nanoseconds()), "ns/call")
	b.ReportMetric(float64(median(theirs).Nanoseconds()), "bare-ns/call")
	b.ReportMetric(median(ours).Seconds()/median(theirs).Seconds(), "x/bare")
}

// goPlugin starts a bare plugin with go-plugin as it comes.
func goPlugin(b *testing.B, c *cage) *grpc.ClientConn {
	zoo, err := zooOnce()
	must(b, err)
	file := filepath.Join(c.dir, "coven-reviewer-bare")
	must(b, os.Symlink(zoo, file))
	cmd := exec.Command(file)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // as ours is: the kernel shares time out among sessions
	client := goplugin.NewClient(&goplugin.ClientConfig{
		HandshakeConfig:  goplugin.HandshakeConfig{MagicCookieKey: "COVEN_PLUGIN", MagicCookieValue: "coven.plugin.v1"},
		VersionedPlugins: map[int]goplugin.PluginSet{1: {"reviewer": bareClient{}}},
		Cmd:              cmd, AutoMTLS: true,
		AllowedProtocols: []goplugin.Protocol{goplugin.ProtocolGRPC},
		Logger:           hclog.New(&hclog.LoggerOptions{Output: io.Discard}),
	})
	b.Cleanup(client.Kill)
	protocol, err := client.Client()
	must(b, err)
	conn, err := protocol.Dispense("reviewer")
	must(b, err)
	return conn.(*grpc.ClientConn)
}

// How long a plugin takes from its start to the answer of its first call, with
// certificates of our own (own) and with AutoMTLS of go-plugin (auto), in turn. The
// program of the plugin is the same. The processor time, of both sides and with the
// end of the plugin, depends less on what else the machine does.
func BenchmarkTLS(b *testing.B) {
	zoo, err := zooOnce()
	must(b, err)
	for name, build := range map[string]func() (string, error){
		"go":     func() (string, error) { return zoo, nil },
		"python": pythonOnce,
	} {
		b.Run(name, func(b *testing.B) {
			if name == "python" {
				skipWithoutPython(b)
			}
			program, err := build()
			must(b, err)
			file := filepath.Join(b.TempDir(), "coven-reviewer-well")
			must(b, os.Symlink(program, file))
			firstCall(b, file, false) // fills the caches
			var own, auto, ownCPU, autoCPU []time.Duration
			for b.Loop() {
				before := worked(b)
				own = append(own, firstCall(b, file, false))
				between := worked(b)
				auto = append(auto, firstCall(b, file, true))
				ownCPU, autoCPU = append(ownCPU, between-before), append(autoCPU, worked(b)-between)
			}
			for unit, list := range map[string][]time.Duration{"own-ms": own, "auto-ms": auto, "own-cpu-ms": ownCPU, "auto-cpu-ms": autoCPU} {
				b.ReportMetric(median(list).Seconds()*1000, unit)
			}
		})
	}
}

// firstCall starts a reviewer with go-plugin and returns how long it took until the
// first call, a health check, was answered.
func firstCall(b *testing.B, file string, auto bool) time.Duration {
	cmd := exec.Command(file)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	start := time.Now()
	config := &goplugin.ClientConfig{
		HandshakeConfig:  goplugin.HandshakeConfig{MagicCookieKey: "COVEN_PLUGIN", MagicCookieValue: "coven.plugin.v1"},
		VersionedPlugins: map[int]goplugin.PluginSet{1: {"reviewer": bareClient{}}},
		Cmd:              cmd, AutoMTLS: auto,
		AllowedProtocols: []goplugin.Protocol{goplugin.ProtocolGRPC},
		Logger:           hclog.New(&hclog.LoggerOptions{Output: io.Discard}),
	}
	if !auto {
		identity, variable := ownIdentity(b)
		config.TLSConfig, cmd.Env = identity, []string{variable}
	}
	client := goplugin.NewClient(config)
	defer client.Kill()
	protocol, err := client.Client()
	must(b, err)
	must(b, protocol.Ping())
	return time.Since(start)
}

// ownIdentity makes the key and the certificate that coven used before AutoMTLS: P-256
// instead of P-521. The variable tells the plugin about the certificate.
func ownIdentity(b *testing.B) (config *tls.Config, variable string) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(b, err)
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: "localhost"},
		DNSNames:              []string{"localhost"},
		SerialNumber:          big.NewInt(1),
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(time.Hour),
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	must(b, err)
	config = &tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{certificate}, PrivateKey: key}},
		RootCAs:      x509.NewCertPool(), // go-plugin replaces it after the handshake
		MinVersion:   tls.VersionTLS12,
		ServerName:   "localhost",
	}
	return config, "PLUGIN_CLIENT_CERT=" + string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate}))
}

// skipWithoutPython skips a benchmark if gRPC for Python is not installed.
func skipWithoutPython(b *testing.B) {
	if out, err := exec.Command("/usr/bin/python3", "-c", "import grpc, grpc_tools, cryptography").CombinedOutput(); err != nil {
		b.Skipf("gRPC for Python is not installed: %s", out)
	}
}

type bareClient struct {
	goplugin.NetRPCUnsupportedPlugin
}

func (bareClient) GRPCServer(*goplugin.GRPCBroker, *grpc.Server) error { return nil }

func (bareClient) GRPCClient(_ context.Context, _ *goplugin.GRPCBroker, conn *grpc.ClientConn) (any, error) {
	return conn, nil
}

// How long it takes until the plugins of a run are ready: the provider, which is
// built in, two reviewers and an arbiter. x/slowest is beside the one of them that
// takes longest alone, x/possible beside what these processors could do at best:
// they have cpu-ms to work, which is with the end of the plugins. Four plugins in Go
// take the same time, all of it on a processor; beside one in Python, which takes
// longer, the others are ready before.
func BenchmarkReady(b *testing.B) {
	for _, slow := range []string{"late", "python"} {
		b.Run(slow, func(b *testing.B) {
			if slow == "python" {
				skipWithoutPython(b)
			}
			ready(b, []plugins.Need{
				{Kind: plugins.KindProvider, Name: "claude"},
				{Kind: plugins.KindReviewer, Name: "well"},
				{Kind: plugins.KindReviewer, Name: slow},
				{Kind: plugins.KindArbiter, Name: "well"},
			})
		})
	}
}

func ready(b *testing.B, needs []plugins.Need) {
	var all, work []time.Duration
	alone := make([][]time.Duration, len(needs))
	warm(b, needs...) // builds, and fills the caches
	for b.Loop() {
		before := worked(b)
		all = append(all, warm(b, needs...))
		work = append(work, worked(b)-before)
		for i, need := range needs {
			alone[i] = append(alone[i], warm(b, need))
		}
	}
	slowest := time.Duration(0)
	for i, need := range needs {
		b.ReportMetric(median(alone[i]).Seconds()*1000, fmt.Sprintf("%s%d-ms", need.Kind, i))
		slowest = max(slowest, median(alone[i]))
	}
	b.ReportMetric(median(all).Seconds()*1000, "all-ms")
	b.ReportMetric(median(work).Seconds()*1000, "cpu-ms")
	b.ReportMetric(median(all).Seconds()/slowest.Seconds(), "x/slowest")
	possible := max(slowest, median(work)/time.Duration(runtime.NumCPU()))
	b.ReportMetric(median(all).Seconds()/possible.Seconds(), "x/possible")
}

// warm is how long it takes until those plugins are ready.
func warm(b *testing.B, needs ...plugins.Need) time.Duration {
	c := newCage(b)
	begun := time.Now()
	must(b, c.host.Warm(b.Context(), needs...))
	took := time.Since(begun)
	c.host.Close()
	return took
}

// worked is the processors' time of this process and of its children that are gone.
func worked(b *testing.B) time.Duration {
	sum := time.Duration(0)
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var u syscall.Rusage
		must(b, syscall.Getrusage(who, &u))
		sum += time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	return sum
}

// The memory that a plugin in Go has for itself when it has nothing to do.
func BenchmarkMemory(b *testing.B) {
	for b.Loop() {
		c := newCage(b)
		for range 10 {
			_, err := c.ask(b, "well", small(), nil)
			must(b, err)
		}
		private, anonymous := c.memory(b, "coven-reviewer-well")
		b.ReportMetric(float64(private)/(1<<20), "private-MiB")
		b.ReportMetric(float64(anonymous)/(1<<20), "anonymous-MiB")
		c.host.Close()
	}
}

// memory is the unshared memory of a program of the cage, and the part of it that is
// no part of its file, in bytes.
func (c *cage) memory(t testing.TB, program string) (private, anonymous int) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", c.pid(t, program)))
	must(t, err)
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		kib, _ := strconv.Atoi(fields[1])
		switch fields[0] {
		case "Private_Clean:", "Private_Dirty:":
			private += kib << 10
		case "Anonymous:":
			anonymous += kib << 10
		}
	}
	return private, anonymous
}

func median(list []time.Duration) time.Duration {
	list = slices.Sorted(slices.Values(list))
	return list[len(list)/2]
}
