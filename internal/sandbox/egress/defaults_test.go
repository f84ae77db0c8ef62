package egress

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// listed formats the defaults as one line: the patterns, with * after those that allow a
// private address.
func listed(in Input) string {
	var all []string
	for _, p := range Defaults(in) {
		text := p.String()
		if p.named {
			text += "!"
		}
		all = append(all, text)
	}
	return strings.Join(all, " ")
}

func TestRemotes(t *testing.T) {
	for remote, want := range map[string]string{
		"https://git.corp.test/a/b.git": "git.corp.test!", "https://ann:secret@git.corp.test:8443/a.git": "git.corp.test:8443!",
		"http://localhost:3000/a": "localhost:3000!", "ssh://git@git.corp.test:2222/a.git": "git.corp.test!", "git://git.corp.test/a": "git.corp.test!",
		"git@git.corp.test:a/b.git": "git.corp.test!", "git.corp.test:a": "git.corp.test!", "ann@[fd00::5]:a": "[fd00::5]!", "ssh://git@[fd00::5]:22/a": "[fd00::5]!",
		"git+ssh://git.corp.test/a": "git.corp.test!", "git@altssh.gitlab.com:a/b": "gitlab.com! registry.gitlab.com",
		"https://bitbucket.org/a/b": "api.bitbucket.org bitbucket.org!", "Git@GitLab.com:a": "gitlab.com! registry.gitlab.com",
		"": "", "/srv/git/a.git": "", "./a": "", "../a:b": "", "a/b:c": "", "file:///srv/a": "", "C:\\repo": "", "c:/repo": "", "ext::sh -c evil": "", "foo::https://x.test/a": "",
		"https://": "", "ftp://x.test/a": "", "https://exa mple/a": "", "git@169.254.169.254:a": "", "*.evil.test:a": "", "https://*.evil.test/a": "", "https://*/": "",
	} {
		if got := listed(Input{Remotes: []string{remote}}); got != want {
			t.Errorf("%s: %s, want %s", remote, got, want)
		}
	}
	for _, remote := range []string{"https://github.com/a/b", "git@github.com:a/b.git", "ssh://git@ssh.github.com:443/a/b.git"} {
		got := strings.Fields(listed(Input{Remotes: []string{remote}}))
		for _, want := range []string{"github.com!", "codeload.github.com", "api.github.com", "raw.githubusercontent.com", "objects.githubusercontent.com", "release-assets.githubusercontent.com"} {
			if !slices.Contains(got, want) {
				t.Errorf("%s lacks %s: %s", remote, want, got)
			}
		}
	}
}

func TestEcosystems(t *testing.T) {
	for file, want := range map[string]string{
		"go.mod": "proxy.golang.org storage.googleapis.com sum.golang.org", "deep/er/requirements-dev.txt": "files.pythonhosted.org pypi.org",
		"web/package.json": "nodejs.org registry.npmjs.org registry.yarnpkg.com repo.yarnpkg.com", "pyproject.toml": "files.pythonhosted.org pypi.org",
		"setup.py": "files.pythonhosted.org pypi.org", "Cargo.toml": "crates.io index.crates.io static.crates.io static.rust-lang.org",
		"Gemfile": "index.rubygems.org rubygems.org", "x.gemspec": "index.rubygems.org rubygems.org", "pom.xml": "repo.maven.apache.org repo1.maven.org",
		"src/App.csproj": "api.nuget.org globalcdn.nuget.org", "mix.exs": "builds.hex.pm hex.pm repo.hex.pm", "pubspec.yaml": "pub.dev storage.googleapis.com",
		"composer.json": "api.github.com codeload.github.com packagist.org repo.packagist.org",
		"README.md":     "", "go.mod/x": "", "my-package.json": "", "go.mod.bak": "", "GO.MOD": "", "": "",
	} {
		if got := listed(Input{Files: []string{"LICENSE", file}}); got != want {
			t.Errorf("%s: %s, want %s", file, got, want)
		}
	}
	for _, file := range []string{"build.gradle", "build.gradle.kts", "Package.swift"} {
		if got := listed(Input{Files: []string{file}}); !strings.Contains(got, "github.com") {
			t.Errorf("%s: %s", file, got)
		}
	}
}

// Every entry of the tables is a valid pattern, and none allows a top-level domain.
func TestTables(t *testing.T) {
	check := func(hosts []string) {
		for _, text := range hosts {
			p, err := ParsePattern(text)
			if err != nil || p.String() != text || strings.Count(p.host.name, ".") < 1 || p.host.addr.IsValid() {
				t.Errorf("%s: %s %v", text, p, err)
			}
		}
	}
	for _, e := range ecosystems {
		check(e.hosts)
		for _, file := range e.files {
			if _, err := filepath.Match(file, "x"); err != nil || len(e.hosts) == 0 {
				t.Errorf("%s: %v", file, err)
			}
		}
	}
	for forge, hosts := range forges {
		check(append(hosts, forge))
	}
	for host, forge := range sshHosts {
		if forges[forge] == nil {
			t.Errorf("%s is no forge, for %s", forge, host)
		}
	}
	for _, variable := range variables {
		if _, err := filepath.Match(variable, "x"); err != nil {
			t.Error(err)
		}
	}
}

func TestVariables(t *testing.T) {
	for kv, want := range map[string]string{
		"GOPROXY=https://goproxy.corp.test,http://b.test:3000|direct": "b.test:3000! goproxy.corp.test!", "GOPROXY=off": "", "GOPROXY=file:///srv": "",
		"GOSUMDB=sum.golang.google.cn": "sum.golang.google.cn!", "GOSUMDB=sum.corp.test+abc+def https://sums.corp.test/x": "sum.corp.test! sums.corp.test!",
		"GOSUMDB=off": "", "npm_config_registry=https://npm.corp.test/": "npm.corp.test!", "NPM_CONFIG_REGISTRY=http://10.0.0.5:4873": "10.0.0.5:4873!",
		"npm_config_@corp:registry=https://npm.corp.test": "npm.corp.test!", "PIP_INDEX_URL=https://ann:secret@pip.corp.test/simple": "pip.corp.test!",
		"PIP_EXTRA_INDEX_URL=https://a.test/x https://b.test/y": "a.test! b.test!", "UV_INDEX=corp=https://uv.corp.test/simple": "uv.corp.test!",
		"CARGO_REGISTRIES_MY_CORP_INDEX=sparse+https://cargo.corp.test/": "cargo.corp.test!", "CARGO_REGISTRIES_X_INDEX=ssh://git@x.test/a": "",
		"RUSTUP_DIST_SERVER=https://rust.corp.test": "rust.corp.test!", "JULIA_PKG_SERVER=julia.corp.test": "julia.corp.test!",
		"npm_config_registry=https://*/": "", "npm_config_registry=http://169.254.169.254/": "", "npm_config_registry=nonsense": "", "OTHER=https://x.test": "",
		"CARGO_REGISTRIES_X_TOKEN=https://x.test": "",
	} {
		if got := listed(Input{Environ: []string{kv}}); got != want {
			t.Errorf("%s: %s, want %s", kv, got, want)
		}
	}
}

// A host that a person named may be private even if it is in a table. The list has no duplicates.
func TestDefaults(t *testing.T) {
	in := Input{
		Endpoints: []string{"https://api.anthropic.com", "http://localhost:11434/v1", "unix:///x", ""},
		Files:     []string{"a/go.mod", "b/go.mod", "go.work"},
		Environ:   []string{"GOPROXY=https://proxy.golang.org,direct"},
		Remotes:   []string{"https://git.test/a", "git@git.test:a"},
	}
	if got, want := listed(in), "api.anthropic.com! git.test! localhost:11434! proxy.golang.org! storage.googleapis.com sum.golang.org"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	var sources []string
	for _, p := range Defaults(in) {
		sources = append(sources, p.Source())
	}
	if got, want := strings.Join(sources, ", "), "the model, remote git.test, the model, GOPROXY, a/go.mod, a/go.mod"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestReadSettings(t *testing.T) {
	home := t.TempDir()
	for file, text := range map[string]string{
		".npmrc": "registry = https://npm.corp.test/\n; registry=https://a.test\n@corp:registry=https://scoped.corp.test\n//npm.corp.test/:_authToken=secret\n" +
			"proxy=http://b.test\n",
		".config/pip/pip.conf":   "[global]\nindex-url = https://pip.corp.test/simple\nextra-index-url =\n    https://c.test/simple\n    https://d.test/simple?a=b\ntimeout = 60\n",
		".cargo/config.toml":     "[registries.corp]\nindex = \"sparse+https://cargo.corp.test/i/\" # ours\n[source.x]\nregistry = 'https://e.test'\n[net]\nx = \"https://f.test\"\n",
		".config/go/env":         "GOPROXY=https://go.corp.test,direct\nGOSUMDB=sum.corp.test\nGONOSUMDB=g.test\n",
		"elsewhere/npmrc":        "registry=https://other.test\n",
		"elsewhere/pip/pip.conf": "[install]\nindex-url=https://xdg.test/simple\n",
	} {
		name := filepath.Join(home, file)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(home, ".pip", "pip.conf"), 0o700); err != nil { // not a file
		t.Fatal(err)
	}
	const want = "c.test! cargo.corp.test! d.test! e.test! go.corp.test! npm.corp.test! pip.corp.test! scoped.corp.test! sum.corp.test!"
	if got := listed(Input{Settings: ReadSettings(home, nil)}); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	got := listed(Input{Settings: ReadSettings(home, []string{
		"npm_config_userconfig=" + filepath.Join(home, "elsewhere", "npmrc"), "XDG_CONFIG_HOME=" + filepath.Join(home, "elsewhere"),
		"PIP_CONFIG_FILE=/dev/null", "CARGO_HOME=" + home, "GOENV=off",
	})})
	if want := "other.test! xdg.test!"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got := ReadSettings(filepath.Join(home, "nowhere"), nil); len(got) != 0 {
		t.Errorf("%v", got)
	}
}
