package plugins

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"time"
)

// certificateEnv is where go-plugin's server looks for the certificate of the only
// client that it may serve.
const certificateEnv = "PLUGIN_CLIENT_CERT"

// newIdentity makes a key and a certificate for the connection with one process,
// and what goes into that process's environment. It is go-plugin's AutoMTLS, which
// makes the same with a P-521 key: those take longer than all else in the start of
// a small plugin, and gRPC in Python knows them only since 2023. The plugin's
// certificate comes with its greeting, and go-plugin trusts that one alone.
func newIdentity() (config *tls.Config, env string, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, "", fmt.Errorf("make a key: %w", err)
	}
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: "localhost", Organization: []string{"coven"}},
		DNSNames:              []string{"localhost"},
		SerialNumber:          big.NewInt(1),
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().AddDate(1, 0, 0),
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, "", fmt.Errorf("make a certificate: %w", err)
	}
	config = &tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{certificate}, PrivateKey: key}},
		ClientAuth:   tls.RequireAndVerifyClientCert, // of the plugin that wants coven's services
		RootCAs:      x509.NewCertPool(),             // nobody, until go-plugin has the greeting
		ClientCAs:    x509.NewCertPool(),
		MinVersion:   tls.VersionTLS12,
		ServerName:   "localhost",
	}
	return config, certificateEnv + "=" + string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate})), nil
}
