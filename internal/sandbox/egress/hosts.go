package egress

// ecosystem is a package ecosystem with the default download hosts of its tools.
type ecosystem struct {
	// files are the names of files that identify projects. A name may contain one * for any characters.
	files []string
	hosts []string
}

// ecosystems is the table of package hosts. Each host is run by the ecosystem itself or is
// a target of its download redirects. A host on which anyone can register a name or a
// bucket is listed only with its full name, and only if downloads end there.
//
// storage.googleapis.com is the broadest: it serves every bucket of Google's storage. The Go
// module proxy redirects large modules and toolchains there (https://go.dev/issue/52908), and
// go fails without it.
var ecosystems = []ecosystem{
	// https://go.dev/ref/mod#module-proxy, https://go.dev/ref/mod#checksum-database
	{[]string{"go.mod", "go.work"}, []string{"proxy.golang.org", "sum.golang.org", "storage.googleapis.com"}},
	// https://docs.npmjs.com/cli/using-npm/registry, https://github.com/nodejs/node-gyp (headers
	// of Node.js), https://yarnpkg.com/corepack (Yarn itself); Yarn 1 writes registry.yarnpkg.com
	// into lock files.
	{[]string{"package.json"}, []string{"registry.npmjs.org", "registry.yarnpkg.com", "repo.yarnpkg.com", "nodejs.org"}},
	// https://jsr.io/docs/npm-compatibility, https://docs.deno.com/runtime/fundamentals/modules/
	{[]string{"deno.json", "deno.jsonc", "jsr.json"}, []string{"jsr.io", "npm.jsr.io", "deno.land", "registry.npmjs.org"}},
	// https://doc.rust-lang.org/cargo/reference/registry-index.html,
	// https://rust-lang.github.io/rustup/environment-variables.html (toolchains)
	{[]string{"Cargo.toml"}, []string{"index.crates.io", "static.crates.io", "crates.io", "static.rust-lang.org"}},
	// https://docs.pypi.org/api/
	{
		[]string{"pyproject.toml", "requirements*.txt", "requirements*.in", "setup.py", "setup.cfg", "Pipfile", "uv.lock", "poetry.lock"},
		[]string{"pypi.org", "files.pythonhosted.org"},
	},
	// https://docs.conda.io/projects/conda/en/stable/user-guide/concepts/channels.html
	{[]string{"environment.yml", "environment.yaml", "pixi.toml"}, []string{"conda.anaconda.org", "repo.anaconda.com"}},
	// https://guides.rubygems.org/rubygems-org-api/, https://index.rubygems.org (Bundler's index)
	{[]string{"Gemfile", "*.gemspec"}, []string{"rubygems.org", "index.rubygems.org"}},
	// https://maven.apache.org/repository/
	{[]string{"pom.xml", "mvnw"}, []string{"repo.maven.apache.org", "repo1.maven.org"}},
	// https://docs.gradle.org/current/userguide/gradle_wrapper.html (distributions
	// redirect to releases on GitHub), https://plugins.gradle.org, https://maven.google.com
	{
		[]string{"build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts"},
		[]string{
			"repo.maven.apache.org", "repo1.maven.org", "plugins.gradle.org", "plugins-artifacts.gradle.org", "services.gradle.org",
			"downloads.gradle.org", "github.com", "objects.githubusercontent.com", "release-assets.githubusercontent.com",
			"maven.google.com", "dl.google.com",
		},
	},
	// https://www.scala-sbt.org/1.x/docs/Resolvers.html
	{[]string{"build.sbt"}, []string{"repo1.maven.org", "repo.scala-sbt.org"}},
	// https://clojure.org/reference/deps_edn#_procurer
	{[]string{"project.clj", "deps.edn"}, []string{"repo1.maven.org", "repo.clojars.org"}},
	// https://packagist.org/apidoc; its packages are archives of GitHub
	{[]string{"composer.json"}, []string{"repo.packagist.org", "packagist.org", "api.github.com", "codeload.github.com"}},
	// https://learn.microsoft.com/nuget/api/service-index
	{[]string{"*.csproj", "*.fsproj", "*.vbproj", "*.sln", "*.slnx", "packages.config"}, []string{"api.nuget.org", "globalcdn.nuget.org"}},
	// https://hex.pm/docs/self-hosting, https://builds.hex.pm (Hex itself)
	{[]string{"mix.exs", "rebar.config"}, []string{"repo.hex.pm", "hex.pm", "builds.hex.pm"}},
	// https://dart.dev/tools/pub/custom-package-repositories; archives redirect to the bucket
	{[]string{"pubspec.yaml"}, []string{"pub.dev", "storage.googleapis.com"}},
	// https://docs.swift.org/package-manager: packages are repositories, most of them on GitHub
	{[]string{"Package.swift"}, []string{"github.com", "codeload.github.com", "release-assets.githubusercontent.com", "objects.githubusercontent.com"}},
	// https://guides.cocoapods.org/syntax/podfile.html#source
	{[]string{"Podfile"}, []string{"cdn.cocoapods.org", "github.com", "codeload.github.com"}},
	// https://hackage.haskell.org/api
	{[]string{"*.cabal", "cabal.project", "stack.yaml"}, []string{"hackage.haskell.org", "downloads.haskell.org"}},
	// https://opam.ocaml.org/doc/Usage.html
	{[]string{"*.opam", "dune-project"}, []string{"opam.ocaml.org"}},
	// https://pkgdocs.julialang.org/v1/registries/
	{[]string{"Project.toml", "JuliaProject.toml"}, []string{"pkg.julialang.org", "*.pkg.julialang.org"}},
	// https://package.elm-lang.org
	{[]string{"elm.json"}, []string{"package.elm-lang.org", "github.com", "codeload.github.com"}},
	// https://developer.hashicorp.com/terraform/registry/api-docs; providers are releases
	{[]string{"*.tf"}, []string{"registry.terraform.io", "releases.hashicorp.com"}},
	// https://bazel.build/external/registry
	{[]string{"MODULE.bazel"}, []string{"bcr.bazel.build", "releases.bazel.build", "mirror.bazel.build"}},
}

// forges lists further hosts that git, downloads and the command line tools of a forge use.
var forges = map[string][]string{
	// The domains in https://api.github.com/meta, and
	// https://docs.github.com/repositories/working-with-files/managing-large-files (LFS)
	"github.com": {
		"api.github.com", "codeload.github.com", "uploads.github.com", "raw.githubusercontent.com", "objects.githubusercontent.com",
		"release-assets.githubusercontent.com", "media.githubusercontent.com", "github-cloud.githubusercontent.com", "lfs.github.com",
		"github-cloud.s3.amazonaws.com",
	},
	// https://docs.gitlab.com/user/gitlab_com/: the API and LFS are on gitlab.com itself
	"gitlab.com": {"registry.gitlab.com"},
	// https://support.atlassian.com/bitbucket-cloud/docs/what-are-the-bitbucket-cloud-ip-addresses-i-should-use-to-configure-my-corporate-firewall/
	"bitbucket.org": {"api.bitbucket.org"},
	// https://learn.microsoft.com/azure/devops/organizations/security/allow-list-ip-url
	"dev.azure.com": {"pkgs.dev.azure.com", "app.vssps.visualstudio.com"},
}

// sshHosts maps the hosts that forges use only for ssh to the forge.
var sshHosts = map[string]string{
	"ssh.github.com": "github.com", "gist.github.com": "github.com", "altssh.gitlab.com": "gitlab.com",
	"altssh.bitbucket.org": "bitbucket.org", "ssh.dev.azure.com": "dev.azure.com",
}

// variables lists the user's variables that contain package hosts. A * matches any
// characters. The values are lists of URLs, which may have a prefix (sparse+, NAME=).
var variables = []string{
	// https://go.dev/ref/mod#environment-variables
	"GOPROXY", "GOSUMDB",
	// https://docs.npmjs.com/cli/using-npm/config, https://yarnpkg.com/configuration/yarnrc
	"npm_config_registry", "NPM_CONFIG_REGISTRY", "npm_config_@*:registry", "YARN_REGISTRY", "YARN_NPM_REGISTRY_SERVER",
	// https://pip.pypa.io/en/stable/topics/configuration/, https://docs.astral.sh/uv/reference/environment/
	"PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "UV_INDEX", "UV_DEFAULT_INDEX", "UV_INDEX_URL", "UV_EXTRA_INDEX_URL",
	// https://doc.rust-lang.org/cargo/reference/config.html, https://rust-lang.github.io/rustup/environment-variables.html
	"CARGO_REGISTRIES_*_INDEX", "RUSTUP_DIST_SERVER", "RUSTUP_UPDATE_ROOT",
	// https://bundler.io/man/bundle-config.1.html, https://hexdocs.pm/hex/Mix.Tasks.Hex.Config.html
	"BUNDLE_MIRROR__*", "HEX_MIRROR", "HEX_MIRROR_URL",
	// https://dart.dev/tools/pub/environment-variables, https://pkgdocs.julialang.org/v1/registries/
	"PUB_HOSTED_URL", "FLUTTER_STORAGE_BASE_URL", "JULIA_PKG_SERVER",
}
