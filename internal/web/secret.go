package web

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/file/regularfile"
)

// maxSecret is the maximum size of a secret file in bytes.
const maxSecret = 64 << 10

// Token returns the secret that proves a login: 256 bits in hexadecimal, from a file in dir that only its owner can read. It
// makes the file if there is none.
func Token(dir string) (token, file string, err error) {
	file = filepath.Join(dir, "page-token-"+strconv.Itoa(os.Geteuid()))
	text, err := kept(file, func() ([]byte, error) {
		secret := make([]byte, 32)
		_, _ = rand.Read(secret) // never fails
		return []byte(hex.EncodeToString(secret) + "\n"), nil
	})
	if err != nil {
		return "", file, err
	}
	token = strings.TrimSpace(string(text))
	if secret, err := hex.DecodeString(token); err != nil || len(secret) != 32 {
		return "", file, exit.Personf("rm "+file, "the file %s has no token", file)
	}
	return token, file, nil
}

// kept returns the content of a file that only its owner can read. The first caller makes it.
func kept(file string, content func() ([]byte, error)) ([]byte, error) {
	text, err := readPrivate(file)
	if !errors.Is(err, fs.ErrNotExist) {
		return text, err
	}
	if text, err = content(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return nil, err
	}
	draft := file + "." + rand.Text()
	if err := os.WriteFile(draft, text, 0o600); err != nil {
		return nil, err
	}
	err = os.Link(draft, file) // unlike a rename, it fails if another process was first
	if err = errors.Join(os.Remove(draft), ignore(err, fs.ErrExist)); err != nil {
		return nil, err
	}
	return readPrivate(file)
}

func ignore(err, kind error) error {
	if errors.Is(err, kind) {
		return nil
	}
	return err
}

// readPrivate reads a file of this user that no other can read.
func readPrivate(file string) ([]byte, error) {
	info, err := os.Lstat(file)
	if err != nil {
		return nil, err
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !info.Mode().IsRegular() || info.Mode().Perm()&0o077 != 0 || !ok || int(owner.Uid) != os.Geteuid() {
		return nil, exit.Personf("rm "+file, "%s is not a file that only you can read", file)
	}
	return regularfile.ReadIn(filepath.Dir(file), filepath.Base(file), maxSecret)
}

// certificateLife is how long a certificate of coven's own is valid.
const certificateLife = 365 * 24 * time.Hour

// Certificate returns a self-signed certificate for the hosts from a file in dir. It makes a new one if there is none, or if it
// does not fit the hosts and the time. So browsers that have accepted it accept it again.
func Certificate(dir string, hosts []string, now time.Time) (*tls.Certificate, error) {
	file := filepath.Join(dir, "page-certificate-"+strconv.Itoa(os.Geteuid())+".pem")
	create := func() ([]byte, error) { return selfSigned(hosts, now) }
	text, err := kept(file, create)
	if err != nil {
		return nil, err
	}
	c, err := parse(text)
	if err == nil && fits(c.Leaf, hosts, now) {
		return c, nil
	}
	if err := os.Remove(file); err != nil {
		return nil, err
	}
	if text, err = kept(file, create); err != nil {
		return nil, err
	}
	return parse(text)
}

func parse(text []byte) (*tls.Certificate, error) {
	c, err := tls.X509KeyPair(text, text)
	return &c, err
}

func fits(leaf *x509.Certificate, hosts []string, now time.Time) bool {
	for _, host := range hosts {
		if leaf.VerifyHostname(host) != nil {
			return false
		}
	}
	return now.After(leaf.NotBefore) && now.Before(leaf.NotAfter)
}

// selfSigned returns a key and a certificate for hosts in PEM.
func selfSigned(hosts []string, now time.Time) ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	c := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "coven web"}, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(certificateLife),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, BasicConstraintsValid: true,
	}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			c.IPAddresses = append(c.IPAddresses, ip)
		} else {
			c.DNSNames = append(c.DNSNames, host)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	err = errors.Join(pem.Encode(&text, &pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.Encode(&text, &pem.Block{Type: "PRIVATE KEY", Bytes: private}))
	return text.Bytes(), err
}

// Fingerprint returns the SHA-256 fingerprint of a certificate, as browsers show it.
func Fingerprint(c *tls.Certificate) string {
	sum := sha256.Sum256(c.Certificate[0])
	return strings.ReplaceAll(fmt.Sprintf("% X", sum), " ", ":")
}
