package egress

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/cgi"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// tools is an isolated environment in which real programs use the proxy.
type tools struct {
	t     *testing.T
	ca    *authority
	proxy *Proxy
	dir   string
	env   []string
	port  string // of the allowed server host.test
}

// newTools starts a server for the allowed host host.test, and a proxy. Only
// the proxy can resolve the name, so a response proves that the proxy was used.
func newTools(t *testing.T, handler http.Handler) *tools {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("the programs take the certificate of the test from variables that only Linux has")
	}
	ca := newAuthority(t)
	dir := t.TempDir()
	port := ca.serve(t, "host.test", handler)
	p := listen(t, Options{
		Allow: patterns(t, "host.test:"+port), Resolver: names(t, map[string][]string{"host.test": {"127.0.0.1"}, "evil.test": {"127.0.0.1"}}),
		ConfigFile: "~/.config/coven/config.yaml",
	})
	env := append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "LC_ALL=C.UTF-8", "TMPDIR=" + dir,
		"SSL_CERT_FILE=" + ca.file, "CURL_CA_BUNDLE=" + ca.file, "GIT_SSL_CAINFO=" + ca.file, "NODE_EXTRA_CA_CERTS=" + ca.file,
		"PIP_CERT=" + ca.file, "REQUESTS_CA_BUNDLE=" + ca.file, "PIP_DISABLE_PIP_VERSION_CHECK=1", "PIP_NO_CACHE_DIR=1", "PIP_RETRIES=1",
		"npm_config_cache=" + filepath.Join(dir, "npm"), "npm_config_fetch_retries=0", "npm_config_cafile=" + ca.file, "npm_config_update_notifier=false",
		"GIT_TERMINAL_PROMPT=0", "GIT_CONFIG_NOSYSTEM=1", "GOENV=off", "GOTOOLCHAIN=local", "GOSUMDB=off",
		"GOPATH=" + filepath.Join(dir, "go"), "GOCACHE=" + filepath.Join(dir, "gocache"), "GOFLAGS=-modcacherw",
		"CARGO_HOME=" + filepath.Join(dir, "cargo"),
	}, p.Env()...)
	return &tools{t, ca, p, dir, env, port}
}

// run runs a program and returns its output. It skips the test if the program is not
// installed.
func (s *tools) run(args ...string) (string, error) {
	s.t.Helper()
	name, err := exec.LookPath(args[0])
	if err != nil {
		s.t.Skipf("%s is not installed", args[0])
	}
	cmd := exec.CommandContext(s.t.Context(), name, args[1:]...)
	cmd.Dir, cmd.Env = s.dir, s.env
	out, err := cmd.CombinedOutput()
	text := string(out)
	if strings.Contains(text, s.proxy.token) && !slices.Contains(args, "-sSv") && args[0] != "env" {
		s.t.Errorf("%s prints the token: %s", args[0], text)
	}
	return text, err
}

// works requires that a program succeeds and its output contains want.
func (s *tools) works(want string, args ...string) {
	s.t.Helper()
	if out, err := s.run(args...); err != nil || !strings.Contains(out, want) {
		s.t.Errorf("%s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// fails requires that a program fails and its output contains want.
func (s *tools) fails(want string, args ...string) {
	s.t.Helper()
	out, err := s.run(args...)
	if err == nil || !strings.Contains(out, want) {
		s.t.Errorf("%s: %v, want %s\n%s", strings.Join(args, " "), err, want, out)
	}
	s.t.Logf("%s prints\n%s", strings.Join(args, " "), out)
}

// advice is the essential part of a refusal.
const advice = `coven: evil.test:8443 is not allowed: it is not on the list of hosts; to allow it, add "evil.test:8443" to sandbox.network`

func TestCurl(t *testing.T) {
	s := newTools(t, http.HandlerFunc(hello))
	s.works("hello", "curl", "-sS", "https://host.test:"+s.port+"/")
	s.fails("403", "curl", "-sS", "https://evil.test:8443/")
	s.fails(advice, "curl", "-sSv", "https://evil.test:8443/")
	s.works(advice, "curl", "-sS", "http://evil.test:8443/")
	// Connections to this machine do not use the proxy.
	s.works("hello", "curl", "-sS", "http://localhost:"+plain(t, hello)+"/")
	if out, err := s.run("curl", "-sS", "--noproxy", "*", "https://host.test:"+s.port); err == nil {
		t.Errorf("the name is known without the proxy: %s", out)
	}
}

func TestWget(t *testing.T) {
	s := newTools(t, http.HandlerFunc(hello))
	s.works("hello", "wget", "-qO-", "--ca-certificate="+s.ca.file, "https://host.test:"+s.port+"/")
	s.fails("coven: evil.test:8443 is not allowed", "wget", "-nv", "-t1", "-O-", "https://evil.test:8443/")
}

func TestGit(t *testing.T) {
	exec := gitBackend(t)
	root := t.TempDir()
	s := newTools(t, &cgi.Handler{Path: exec, Env: []string{"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1"}})
	s.works("", "git", "init", "-q", "--bare", filepath.Join(root, "a.git"))
	s.works("", "git", "-C", filepath.Join(root, "a.git"), "config", "http.receivepack", "true")
	s.works("", "git", "clone", "-q", "https://host.test:"+s.port+"/a.git", "clone")
	s.works("", "git", "-C", "clone", "-c", "user.name=a", "-c", "user.email=a@b.test", "commit", "-q", "--allow-empty", "-m", "first")
	s.works("", "git", "-C", "clone", "push", "-q", "origin", "HEAD:refs/heads/main")
	s.works("refs/heads/main", "git", "ls-remote", "https://host.test:"+s.port+"/a.git")
	s.fails("403", "git", "ls-remote", "https://evil.test:8443/a.git")
	s.fails(advice, "env", "GIT_CURL_VERBOSE=1", "git", "ls-remote", "https://evil.test:8443/a.git")
	s.fails("remote: "+advice, "git", "ls-remote", "http://evil.test:8443/a.git")
}

// gitBackend returns git's own server, if it is installed.
func gitBackend(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "git", "--exec-path").Output()
	if err != nil {
		t.Skip("git is not installed")
	}
	file := filepath.Join(strings.TrimSpace(string(out)), "git-http-backend")
	if _, err := os.Stat(file); err != nil {
		t.Skip("git-http-backend is not installed")
	}
	return file
}

func TestNpm(t *testing.T) {
	archive := tarball(t, "package/package.json", `{"name": "tiny", "version": "1.0.0"}`)
	sum := sha512.Sum512(archive)
	s := newTools(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/tiny":
			_, _ = fmt.Fprintf(w, `{"name": "tiny", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": {"name": "tiny", "version": "1.0.0",
				"dist": {"tarball": "https://%s/tiny.tgz", "integrity": "sha512-%s"}}}}`, r.Host, base64.StdEncoding.EncodeToString(sum[:]))
		case "/tiny.tgz":
			_, _ = w.Write(archive)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	install := []string{"npm", "install", "--no-audit", "--no-fund", "--registry"}
	s.works("added 1 package", append(install, "https://host.test:"+s.port, "tiny")...)
	s.fails(advice, append(install, "https://evil.test:8443", "other")...)
	s.fails("403", append(install, "http://evil.test:8443", "other")...)
	// A proxy in the user's own settings is overridden.
	if err := os.WriteFile(filepath.Join(s.dir, ".npmrc"), []byte("https-proxy=http://127.0.0.1:1\nproxy=http://127.0.0.1:1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.works("1.0.0", "npm", "view", "tiny", "version", "--prefer-online", "--registry", "https://host.test:"+s.port)
}

func TestNode(t *testing.T) {
	s := newTools(t, http.HandlerFunc(hello))
	out, err := s.run("node", "-e", `const [a, b] = process.versions.node.split(".").map(Number); console.log(a >= 24 || a == 22 && b >= 21)`)
	if err != nil || strings.TrimSpace(out) != "true" {
		t.Skip("fetch of this Node.js knows no proxy")
	}
	const fetch = `fetch(process.argv[1]).then(r => r.text()).then(console.log, e => { console.log(e, e.cause); process.exit(1) })`
	s.works("hello", "node", "-e", fetch, "https://host.test:"+s.port+"/")
	s.fails("403", "node", "-e", fetch, "https://evil.test:8443/")
	s.works("hello", "node", "-e", fetch, "http://localhost:"+plain(t, hello)+"/")
}

func TestGo(t *testing.T) {
	archive := zipped(t, map[string]string{"tiny.test/tiny@v1.0.0/go.mod": "module tiny.test/tiny\n", "tiny.test/tiny@v1.0.0/a.go": "package tiny\n"})
	s := newTools(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/tiny.test/tiny/@v/v1.0.0.info":
			_, _ = w.Write([]byte(`{"Version": "v1.0.0"}`))
		case "/tiny.test/tiny/@v/v1.0.0.mod":
			_, _ = w.Write([]byte("module tiny.test/tiny\n"))
		case "/tiny.test/tiny/@v/v1.0.0.zip":
			_, _ = w.Write(archive)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	download := []string{"go", "mod", "download", "tiny.test/tiny@v1.0.0"}
	env := s.env
	s.env = append(env, "GOPROXY=https://host.test:"+s.port)
	s.works("", download...)
	for _, scheme := range []string{"https", "http"} {
		s.env = append(env, "GOPROXY="+scheme+"://evil.test:8443", "GOMODCACHE="+filepath.Join(s.dir, scheme))
		s.fails(advice, download...)
	}
}

func TestPython(t *testing.T) {
	s := newTools(t, http.HandlerFunc(hello))
	const get = "import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1]).read())"
	s.works("hello", "python3", "-c", get, "https://host.test:"+s.port+"/")
	s.fails(advice, "python3", "-c", get, "https://evil.test:8443/")
	s.works("hello", "python3", "-c", get, "http://localhost:"+plain(t, hello)+"/")
}

func TestPip(t *testing.T) {
	wheel := zipped(t, map[string]string{
		"tiny.py": "", "tiny-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n",
		"tiny-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n", "tiny-1.0.dist-info/RECORD": "",
	})
	s := newTools(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/simple/tiny/":
			w.Header().Set("Content-Type", "text/html")
			_, _ = fmt.Fprint(w, `<a href="/tiny-1.0-py3-none-any.whl">tiny-1.0-py3-none-any.whl</a>`)
		case "/tiny-1.0-py3-none-any.whl":
			_, _ = w.Write(wheel)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	if _, err := s.run("python3", "-m", "pip", "--version"); err != nil {
		t.Skip("pip is not installed")
	}
	download := []string{"python3", "-m", "pip", "download", "--no-deps", "tiny", "--index-url"}
	s.works("Saved", append(download, "https://host.test:"+s.port+"/simple")...)
	s.fails("coven: evil.test:8443 is not allowed", append(download, "https://evil.test:8443/simple")...)
}

// tarball returns a compressed archive of one file.
func tarball(t *testing.T, name, text string) []byte {
	t.Helper()
	var buffer bytes.Buffer
	packed := gzip.NewWriter(&buffer)
	archive := tar.NewWriter(packed)
	if err := archive.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(text))}); err != nil {
		t.Fatal(err)
	}
	if _, err := archive.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	if err := packed.Close(); err != nil {
		t.Fatal(err)
	}
	return buffer.Bytes()
}

// zipped returns an archive of files.
func zipped(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var buffer bytes.Buffer
	archive := zip.NewWriter(&buffer)
	for name, text := range files {
		w, err := archive.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	return buffer.Bytes()
}
