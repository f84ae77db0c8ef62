package detect

import (
	"encoding/json"
	"path/filepath"
	"strings"

	"github.com/coven-run/coven/internal/text/shellword"
)

// installers lists files of tools that install dependencies, each with the command that installs them and the package
// itself. The first file of a list that exists decides.
var (
	pythonInstallers = [][2]string{
		{"uv.lock", "uv sync"},
		{"poetry.lock", "poetry install"},
		{"Pipfile", "pipenv install --dev"},
		{"pyproject.toml", "python3 -m venv .venv && .venv/bin/pip install -e ."},
		{"setup.py", "python3 -m venv .venv && .venv/bin/pip install -e ."},
		{"requirements.txt", "python3 -m venv .venv && .venv/bin/pip install -r requirements.txt"},
	}
	otherInstallers = [][2]string{
		{"composer.json", "composer install"},
		{"Gemfile", "bundle install"},
	}
)

// Installers returns the commands that install the dependencies of the project in a directory, one for each language.
func Installers(dir string) (commands []string) {
	t := top(dir)
	for _, command := range []string{t.installer(pythonInstallers), t.nodeInstaller(), t.installer(otherInstallers)} {
		if command != "" {
			commands = append(commands, command)
		}
	}
	return commands
}

// Setup returns the commands that install the dependencies of a repository: of the project at the top, or if there is none, of
// those in directories there.
func Setup(root string) (commands []string) {
	if commands = Installers(root); len(commands) > 0 {
		return commands
	}
	for _, dir := range projectDirs(root) {
		for _, command := range Installers(filepath.Join(root, dir)) {
			commands = append(commands, "cd "+shellword.Word(dir)+" && "+command)
		}
	}
	return commands
}

func (t top) installer(known [][2]string) string {
	for _, tool := range known {
		if t.first(tool[0]) != "" {
			return tool[1]
		}
	}
	return ""
}

// nodeLocks lists the lock files of package managers for Node.js.
var nodeLocks = [][2]string{
	{"pnpm-lock.yaml", "pnpm"},
	{"yarn.lock", "yarn"},
	{"bun.lock", "bun"},
	{"bun.lockb", "bun"},
	{"package-lock.json", "npm"},
	{"npm-shrinkwrap.json", "npm"},
}

// packageManager returns the package manager for Node.js that package.json names, or whose lock file exists.
func (t top) packageManager() string {
	var pkg struct {
		PackageManager string `json:"packageManager"`
	}
	_ = json.Unmarshal([]byte(t.read("package.json")), &pkg)
	switch name, _, _ := strings.Cut(pkg.PackageManager, "@"); name {
	case "npm", "pnpm", "yarn", "bun":
		return name
	}
	if name := t.installer(nodeLocks); name != "" {
		return name
	}
	return "npm"
}

func (t top) nodeInstaller() string {
	if t.first("package.json") == "" {
		return ""
	}
	switch manager := t.packageManager(); {
	case manager == "yarn" && t.first(".yarnrc.yml") != "": // Yarn 2 or later
		return "yarn install --immutable"
	case manager != "npm":
		return manager + " install --frozen-lockfile"
	case t.first("package-lock.json", "npm-shrinkwrap.json") != "":
		return "npm ci"
	}
	return "npm install"
}
