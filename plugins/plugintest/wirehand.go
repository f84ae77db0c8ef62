package plugintest

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
)

// answered is a parsed handshake line.
type answered struct {
	version string
	socket  string
	cert    *x509.Certificate
}

// readLine parses a handshake line. Its fields are the core version, the contract version, the network, the
// address, the protocol and the certificate.
func readLine(line, dir string) (answered, error) {
	parts := strings.Split(line, "|")
	if len(parts) < 6 {
		return answered{}, fmt.Errorf("%s has %d fields, six are wanted: core version, version, network, address, protocol, certificate", quoted(line), len(parts))
	}
	a := answered{version: parts[1], socket: parts[3]}
	switch {
	case parts[0] != "1":
		return a, fmt.Errorf("field 1, the core version, is %s and not 1", quoted(parts[0]))
	case parts[2] != "unix":
		return a, fmt.Errorf("field 3, the network, is %s and not unix", quoted(parts[2]))
	case parts[4] != "grpc":
		return a, fmt.Errorf("field 5, the protocol, is %s and not grpc", quoted(parts[4]))
	case !filepath.IsAbs(a.socket) || filepath.Dir(filepath.Clean(a.socket)) != dir:
		return a, fmt.Errorf("field 4, the address, is %s: the socket must be in %s, which $%s names", quoted(a.socket), dir, socketDir)
	}
	if _, err := strconv.Atoi(a.version); err != nil {
		return a, fmt.Errorf("field 2, the version, is %s and not a number", quoted(a.version))
	}
	info, err := os.Lstat(a.socket)
	if err != nil || info.Mode().Type() != os.ModeSocket {
		return a, fmt.Errorf("field 4, the address, is %s: there is no socket", quoted(a.socket))
	}
	if parts[5] == "" {
		return a, fmt.Errorf("field 6, the certificate, is empty: with $%s given, a plugin serves with TLS only", cert)
	}
	der, err := base64.RawStdEncoding.DecodeString(parts[5])
	if err != nil {
		return a, fmt.Errorf("field 6, the certificate, is not in base64 without padding: %w", err)
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		return a, fmt.Errorf("field 6, the certificate, is not in DER: %w", err)
	}
	return a, nil
}

const maxQuoted = 200

func quoted(text string) string {
	if len(text) > maxQuoted {
		text = text[:maxQuoted] + "..."
	}
	return strconv.Quote(text)
}

// identity returns a new client certificate and its PEM encoding, like those that coven generates for each
// start.
func identity() (tls.Certificate, string, error) {
	key, err := ecdsa.GenerateKey(elliptic.P521(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, "", fmt.Errorf("make a key: %w", err)
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		return tls.Certificate{}, "", fmt.Errorf("make a certificate: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "localhost", Organization: []string{"plugintest"}},
		DNSNames: []string{"localhost"}, NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(24 * time.Hour),
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment | x509.KeyUsageKeyAgreement | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true, IsCA: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return tls.Certificate{}, "", fmt.Errorf("make a certificate: %w", err)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, string(text), nil
}

// dial connects to the plugin's socket. It does not use TLS if own is nil.
func (a answered) dial(own *tls.Certificate) (*grpc.ClientConn, error) {
	creds := insecure.NewCredentials()
	if own != nil {
		roots := x509.NewCertPool()
		roots.AddCert(a.cert)
		creds = credentials.NewTLS(&tls.Config{
			Certificates: []tls.Certificate{*own}, RootCAs: roots, ServerName: "localhost", MinVersion: tls.VersionTLS12,
		})
	}
	conn, err := grpc.NewClient("passthrough:///plugin", grpc.WithTransportCredentials(creds),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", a.socket)
		}))
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", a.socket, err)
	}
	return conn, nil
}
