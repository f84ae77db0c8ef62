package servertest_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/coven-run/coven/distributed/server"
	"github.com/coven-run/coven/distributed/server/servertest"
)

func TestTeam(t *testing.T) {
	team := servertest.UseTeam(t, servertest.TeamOptions{})
	clientOf := func(name string, permissions ...string) []string {
		env, err := team.Client(testContext(t), name, permissions...)
		if err != nil {
			t.Fatal(err)
		}
		return env
	}
	worker := clientOf("worker", "coven:write")
	c := dial(t, worker)
	startWorker(t, c)

	t.Run("right certificate and token", func(t *testing.T) {
		answer(t, c, begin(t, c, "one"))
		if err := server.Register(testContext(t), c, "mine"); !denied(err) {
			t.Errorf("a worker registered a namespace: %v", err)
		}
		refusesLargePayloads(t, c)
	})
	t.Run("certificates", func(t *testing.T) { certificates(t, worker) })
	t.Run("ports between the services", func(t *testing.T) { innerPorts(t, team.Address(), worker) })
	t.Run("no token", func(t *testing.T) {
		if err := describe(t, dial(t, clientOf("tokenless"))); !denied(err) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("token of another namespace", func(t *testing.T) {
		if err := describe(t, dial(t, clientOf("other", "other:admin"))); !denied(err) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("token to read", func(t *testing.T) {
		reader := dial(t, clientOf("reader", "coven:read"))
		if err := describe(t, reader); err != nil {
			t.Error(err)
		}
		if err := reader.SignalWorkflow(testContext(t), "one", "", "answer", "no"); !denied(err) {
			t.Errorf("a reader's signal: %v", err)
		}
	})
	t.Run("permission that gives nothing", func(t *testing.T) {
		if _, err := team.Client(testContext(t), "nothing", "coven:worker"); err == nil {
			t.Error("a token was made")
		}
	})
	t.Run("revoked token", func(t *testing.T) {
		left := dial(t, clientOf("left", "coven:read"))
		if err := describe(t, left); err != nil {
			t.Fatal(err)
		}
		if err := team.Revoke(testContext(t), "left"); err != nil {
			t.Fatal(err)
		}
		until(t, func() bool { return denied(describe(t, left)) })
		if err := describe(t, c); err != nil {
			t.Errorf("another client's token: %v", err)
		}
	})
	t.Run("killed", func(t *testing.T) {
		run := begin(t, c, "two")
		rss, _ := team.RSS()
		if err := team.Kill(); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if err := team.Restart(testContext(t)); err != nil {
			t.Fatal(err)
		}
		t.Logf("%d MB; back after %v", rss>>20, time.Since(began).Round(time.Millisecond))
		answer(t, c, run)
	})
	t.Run("set up again", func(t *testing.T) {
		if err := team.SetUp(testContext(t)); err != nil {
			t.Fatal(err)
		}
		answer(t, dial(t, worker), begin(t, c, "three"))
	})
}

// TestTeamWithoutAuthorizer shows that a certificate alone opens everything. The frontend has another
// address than the services behind it.
func TestTeamWithoutAuthorizer(t *testing.T) {
	o := servertest.TeamOptions{NoAuthorizer: true}
	if runtime.GOOS == "linux" {
		o.Host = "127.0.0.2"
	}
	team := servertest.UseTeam(t, o)
	env, err := team.Client(testContext(t), "anyone")
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Register(testContext(t), dial(t, env), "other"); err != nil {
		t.Error(err)
	}
	certificates(t, env)
}

// certificates checks that clients with other certificates than env's are refused.
func certificates(t *testing.T, env []string) {
	dir := t.TempDir()
	certificate, key := path(env, "CLIENT_CERT"), path(env, "CLIENT_KEY")
	for name, clients := range map[string][]string{
		"none":                     without(env, "TEMPORAL_TLS_CLIENT_"),
		"of another CA":            with(env, issue(t, dir, "", "")),
		"signed by another client": with(env, issue(t, dir, certificate, key)),
		"no TLS":                   append(without(env, "TEMPORAL_TLS_"), "TEMPORAL_TLS=false"),
	} {
		options, err := servertest.Options(clients)
		if err != nil {
			t.Fatal(err)
		}
		c, err := client.DialContext(testContext(t), options)
		if err == nil {
			c.Close()
			t.Errorf("certificate %s: connected", name)
			continue
		}
		t.Logf("certificate %s: %v", name, err)
	}
	if err := describe(t, dial(t, env)); err != nil {
		t.Errorf("the right certificate: %v", err)
	}
}

// innerPorts checks that a client's certificate does not open the ports behind the frontend's.
func innerPorts(t *testing.T, address string, env []string) {
	certificate, err := tls.LoadX509KeyPair(path(env, "CLIENT_CERT"), path(env, "CLIENT_KEY"))
	if err != nil {
		t.Fatal(err)
	}
	host, port, _ := net.SplitHostPort(address)
	first, _ := strconv.Atoi(port)
	for inner := first + 1; inner < first+10; inner++ {
		dialer := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{certificate}}}
		conn, err := dialer.DialContext(testContext(t), "tcp", net.JoinHostPort(host, strconv.Itoa(inner)))
		if err == nil {
			// With TLS 1.3, the server's refusal arrives after the client's part of the handshake.
			_ = conn.SetDeadline(time.Now().Add(time.Minute))
			_, err = conn.Read(make([]byte, 1))
			_ = conn.Close()
		}
		if err == nil || !strings.Contains(err.Error(), "remote error: tls") {
			t.Errorf("port %d, %d after the frontend's: %v", inner, inner-first, err)
		}
	}
}

func denied(err error) bool {
	var refused *serviceerror.PermissionDenied
	return errors.As(err, &refused)
}

func describe(t *testing.T, c client.Client) error {
	_, err := c.WorkflowService().DescribeNamespace(testContext(t), &workflowservice.DescribeNamespaceRequest{Namespace: server.Namespace})
	return err
}

func until(t *testing.T, done func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	for !done() {
		select {
		case <-again.C:
		case <-ctx.Done():
			t.Fatal(ctx.Err())
		}
	}
}

func path(env []string, name string) string {
	for _, v := range env {
		if file, ok := strings.CutPrefix(v, "TEMPORAL_TLS_"+name+"_PATH="); ok {
			return file
		}
	}
	return ""
}

func without(env []string, prefix string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(v string) bool { return strings.HasPrefix(v, prefix) })
}

func with(env []string, file string) []string {
	return append(without(env, "TEMPORAL_TLS_CLIENT_"), "TEMPORAL_TLS_CLIENT_CERT_PATH="+file+".pem", "TEMPORAL_TLS_CLIENT_KEY_PATH="+file+".key")
}

// issue writes a client's certificate, FILE.pem, and key, FILE.key. Its issuer is the certificate and
// key in files, and itself if these are empty.
func issue(t *testing.T, dir, issuerFile, issuerKeyFile string) (file string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()),
		Subject:      pkix.Name{CommonName: "mallory"},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(time.Hour),
		KeyUsage:     x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	parent, signer, chain := template, any(key), [][]byte{}
	if issuerFile != "" {
		pair, err := tls.LoadX509KeyPair(issuerFile, issuerKeyFile)
		if err != nil {
			t.Fatal(err)
		}
		parent, signer, chain = pair.Leaf, pair.PrivateKey, pair.Certificate
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	var text []byte
	for _, certificate := range append([][]byte{der}, chain...) {
		text = append(text, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate})...)
	}
	file = filepath.Join(dir, template.SerialNumber.String())
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{".pem": text, ".key": pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: private})} {
		if err := os.WriteFile(file+name, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return file
}
