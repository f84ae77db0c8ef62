package detect

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

type files map[string]string

func (f files) root(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for file, text := range f {
		path := filepath.Join(root, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestChecks(t *testing.T) {
	const noTests = `{"scripts": {"test": "echo \"Error: no test specified\" && exit 1"}}`
	const vitest = `{"scripts": {"test": "vitest"}}`
	for name, c := range map[string]struct {
		files files
		want  []string
	}{
		"nothing":           {nil, nil},
		"go":                {files{"go.mod": "module x"}, []string{"go test ./... (go.mod)"}},
		"python, .venv":     {files{"pytest.ini": "", ".venv/pyvenv.cfg": ""}, []string{".venv/bin/python -m pytest (pytest.ini)"}},
		"django, venv":      {files{"manage.py": "", "venv/pyvenv.cfg": ""}, []string{"venv/bin/python manage.py test (manage.py)"}},
		"python, uv, .venv": {files{"pytest.ini": "", "uv.lock": "", ".venv/pyvenv.cfg": ""}, []string{"uv run python -m pytest (pytest.ini)"}},
		"make wins":         {files{"go.mod": "", "Makefile": "build:\n\ttrue\n\ntest: build\n\tgo test\n"}, []string{"make test (Makefile)"}},
		"make, several":     {files{"GNUmakefile": "all check test:: x\n"}, []string{"make test (GNUmakefile)"}},
		"make, alone":       {files{"makefile": "test:\r\n\ttrue\r\n"}, []string{"make test (makefile)"}},
		"make, none":        {files{"Makefile": ".PHONY: test\ntests: a\ntest-all:\ntest = 1\ntest := 2\n\ttest: x\n# test:\nbuild: test\n"}, nil},
		"make, hidden":      {files{"GNUmakefile": "all:\n", "Makefile": "test:\n"}, nil},
		"npm":               {files{"package.json": vitest}, []string{"npm test (package.json)"}},
		"npm, default":      {files{"package.json": noTests}, nil},
		"npm, no script":    {files{"package.json": `{"scripts": {}}`}, nil},
		"npm, broken":       {files{"package.json": `{"scripts": {"test": `}, nil},
		"pnpm":              {files{"package.json": vitest, "pnpm-lock.yaml": "", "package-lock.json": ""}, []string{"pnpm test (package.json)"}},
		"yarn":              {files{"package.json": vitest, "yarn.lock": ""}, []string{"yarn test (package.json)"}},
		"bun":               {files{"package.json": vitest, "bun.lock": ""}, []string{"bun run test (package.json)"}},
		"package manager":   {files{"package.json": `{"packageManager": "pnpm@9.1.0", "scripts": {"test": "x"}}`, "package-lock.json": ""}, []string{"pnpm test (package.json)"}},
		"cargo":             {files{"Cargo.toml": "[package]"}, []string{"cargo test (Cargo.toml)"}},
		"cargo, workspace":  {files{"Cargo.toml": "[package]\nname = 'x'\n[workspace]\nmembers = ['a']\n"}, []string{"cargo test --workspace (Cargo.toml)"}},
		"gradle":            {files{"build.gradle.kts": "", "gradlew": "", "pom.xml": ""}, []string{"./gradlew check (build.gradle.kts)"}},
		"gradle, installed": {files{"settings.gradle": ""}, []string{"gradle check (settings.gradle)"}},
		"maven":             {files{"pom.xml": "", "mvnw": ""}, []string{"./mvnw verify (pom.xml)"}},
		"pytest":            {files{"pyproject.toml": "[tool.pytest.ini_options]\n"}, []string{"python -m pytest (pyproject.toml)"}},
		"pytest, uv":        {files{"pyproject.toml": "[tool.pytest]\n", "uv.lock": ""}, []string{"uv run python -m pytest (pyproject.toml)"}},
		"pytest, poetry":    {files{"pytest.ini": "", "poetry.lock": ""}, []string{"poetry run python -m pytest (pytest.ini)"}},
		"pytest, tox":       {files{"pyproject.toml": "", "tox.ini": "[tox]\n[pytest]\n"}, []string{"python -m pytest (tox.ini)"}},
		"pytest, setup.cfg": {files{"setup.cfg": "[tool:pytest]\n"}, []string{"python -m pytest (setup.cfg)"}},
		"no pytest":         {files{"pyproject.toml": "[project]\nname = 'tool.pytest'\n", "tox.ini": "[tox]\n"}, nil},
		"django":            {files{"manage.py": ""}, []string{"python manage.py test (manage.py)"}},
		"django, pytest":    {files{"manage.py": "", "setup.cfg": "[tool:pytest]\n"}, []string{"python -m pytest (setup.cfg)"}},
		"rails":             {files{"bin/rails": "", "test/a.rb": ""}, []string{"bin/rails test (bin/rails)"}},
		"rails, no tests":   {files{"bin/rails": ""}, nil},
		"rspec":             {files{"bin/rails": "", "test/a.rb": "", ".rspec": ""}, []string{"bundle exec rspec (.rspec)"}},
		"make check":        {files{"Makefile": "check:\n\ttrue\n", "go.mod": ""}, []string{"make check (Makefile)", "go test ./... (go.mod)"}},
		"autotools":         {files{"Makefile.am": "", "configure.ac": ""}, []string{"autoreconf --install && ./configure && make check (Makefile.am)"}},
		"autotools, built":  {files{"Makefile.am": "", "configure": ""}, []string{"./configure && make check (Makefile.am)"}},
		"just":              {files{"justfile": "default: test\n\ntest *args: build\n  go test\n", "go.mod": ""}, []string{"just test (justfile)"}},
		"just, no recipe":   {files{"justfile": "test := 'x'\nlint:\n", "go.mod": ""}, []string{"go test ./... (go.mod)"}},
		"cmake": {
			files{"CMakeLists.txt": "project(x)\nenable_testing()\n"},
			[]string{"cmake -S . -B build && cmake --build build && ctest --test-dir build --output-on-failure (CMakeLists.txt)"},
		},
		"cmake, no tests":  {files{"CMakeLists.txt": "project(x)\n"}, nil},
		"dotnet":           {files{"App.sln": "", "src/App/App.csproj": ""}, []string{"dotnet test (App.sln)"}},
		"elixir":           {files{"mix.exs": ""}, []string{"mix test (mix.exs)"}},
		"deno":             {files{"deno.json": "{}"}, []string{"deno test (deno.json)"}},
		"deno, task":       {files{"deno.jsonc": `{"tasks": {"test": "deno test -A"}}`}, []string{"deno task test (deno.jsonc)"}},
		"composer":         {files{"composer.json": `{"scripts": {"test": "phpunit"}}`}, []string{"composer test (composer.json)"}},
		"rake":             {files{"Gemfile": "", "Rakefile": "Rake::TestTask.new\n"}, []string{"bundle exec rake test (Rakefile)"}},
		"pytest, needed":   {files{"pyproject.toml": "[project]\n[dependency-groups]\ndev = [\"pytest>=8\"]\n"}, []string{"python -m pytest (pyproject.toml)"}},
		"pytest, required": {files{"requirements-dev.txt": "black\npytest==8.0\n"}, []string{"python -m pytest (requirements-dev.txt)"}},
		"pytest, not":      {files{"requirements.txt": "mypytest\n"}, nil},
		"swift":            {files{"Package.swift": ""}, []string{"swift test (Package.swift)"}},
		"directories": {
			files{"backend/go.mod": "", "front end/package.json": vitest, "docs/package.json": vitest, "node_modules/x/package.json": vitest, "readme/README": ""},
			[]string{"cd backend && go test ./... (backend/)", "cd 'front end' && npm test (front end/)"},
		},
		"directories, top": {files{"go.mod": "", "web/package.json": vitest}, []string{"go test ./... (go.mod)"}},
		"several": {
			files{"package.json": vitest, "go.mod": "", "Cargo.toml": "", "Makefile": "build:\n"},
			[]string{"npm test (package.json)", "go test ./... (go.mod)", "cargo test (Cargo.toml)"},
		},
	} {
		checks, found := Checks(c.files.root(t))
		if !reflect.DeepEqual(found, c.want) {
			t.Errorf("%s: found %q, want %q", name, found, c.want)
		}
		for i, check := range checks {
			if !strings.HasPrefix(found[i], check+" (") {
				t.Errorf("%s: check %q, found %q", name, check, found[i])
			}
		}
	}
}

func TestInstallers(t *testing.T) {
	for name, c := range map[string]struct {
		files files
		want  []string
	}{
		"none":          {files{"go.mod": "", "Cargo.toml": "", "pnpm-lock.yaml": ""}, nil},
		"npm":           {files{"package.json": "{}"}, []string{"npm install"}},
		"npm, locked":   {files{"package.json": "{}", "package-lock.json": "{}"}, []string{"npm ci"}},
		"pnpm":          {files{"package.json": "{}", "pnpm-lock.yaml": ""}, []string{"pnpm install --frozen-lockfile"}},
		"yarn 1":        {files{"package.json": "{}", "yarn.lock": ""}, []string{"yarn install --frozen-lockfile"}},
		"yarn 4":        {files{"package.json": "{}", "yarn.lock": "", ".yarnrc.yml": ""}, []string{"yarn install --immutable"}},
		"uv":            {files{"pyproject.toml": "", "uv.lock": ""}, []string{"uv sync"}},
		"pip":           {files{"requirements.txt": ""}, []string{"python3 -m venv .venv && .venv/bin/pip install -r requirements.txt"}},
		"rails, assets": {files{"Gemfile": "", "package.json": "{}", "yarn.lock": ""}, []string{"yarn install --frozen-lockfile", "bundle install"}},
	} {
		if got := Installers(c.files.root(t)); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestSetup(t *testing.T) {
	project := files{"web/package.json": `{"scripts": {"test": "x"}}`, "web/package-lock.json": "{}", "api/go.mod": ""}
	if got := Setup(project.root(t)); !reflect.DeepEqual(got, []string{"cd web && npm ci"}) {
		t.Errorf("%q", got)
	}
	project["requirements.txt"] = ""
	if got := Setup(project.root(t)); len(got) != 1 || !strings.HasPrefix(got[0], "python3 -m venv") {
		t.Errorf("%q", got)
	}
}

func TestInPlace(t *testing.T) {
	root := files{"src/pkg/__init__.py": ""}.root(t)
	const site = ".venv/lib/python3.11/site-packages/"
	for name, c := range map[string]struct {
		file, text string
		want       []string
	}{
		"pip, src":        {"__editable__.pkg.pth", root + "/src\n", []string{root + "/src"}},
		"pip, the top":    {"__editable__.pkg.pth", root + "\n", []string{root}},
		"setuptools":      {"__editable___pkg_finder.py", "MAPPING = {'pkg': '" + root + "/src/pkg'}\n", []string{root + "/src"}},
		"another project": {"other.pth", root + "-2/src\n/elsewhere\n", nil},
	} {
		t.Run(name, func(t *testing.T) {
			env := files{site + c.file: c.text}.root(t)
			if got := InPlace(root, filepath.Join(env, ".venv")); !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
