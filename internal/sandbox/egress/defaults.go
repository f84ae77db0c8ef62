package egress

import (
	"cmp"
	"net/url"
	"path"
	"slices"
	"strings"
)

// Input is the input of Defaults. Except for file names, nothing in it may
// come from the content of the repository, because agents can change that.
type Input struct {
	// Endpoints are the URLs of the models that agents use: https://api.anthropic.com.
	Endpoints []string
	// Remotes are the URLs of the repository's remotes, as used by git (git remote get-url).
	Remotes []string
	// Files are the slash-separated paths in the repository. Only their names are used.
	Files []string
	// Environ is the user's environment, in the format of os.Environ.
	Environ []string
	// Settings are the user's settings of package managers; see ReadSettings.
	Settings Settings
}

// Defaults returns the hosts that a task needs by default: those of the models, of
// the remotes, of the packages of the ecosystems that the repository uses, and those in
// the user's own settings. It skips values without a host. The list is sorted and has
// no duplicates.
func Defaults(in Input) []Pattern {
	var d defaults
	for _, endpoint := range in.Endpoints {
		d.url(endpoint, "the model")
	}
	for _, remote := range in.Remotes {
		d.remote(remote)
	}
	for i, file := range usedBy(in.Files) {
		if file != "" {
			d.table(ecosystems[i].hosts, file)
		}
	}
	for _, kv := range in.Environ {
		if name, value, _ := strings.Cut(kv, "="); slices.ContainsFunc(variables, func(v string) bool { return matchName(v, name) }) {
			d.urls(value, name, name)
		}
	}
	for _, s := range in.Settings {
		d.urls(s.Value, s.Key, s.File)
	}
	slices.SortStableFunc(d.list, func(a, b Pattern) int { return strings.Compare(a.String(), b.String()) })
	return d.list
}

// usedBy returns for each ecosystem the first file that identifies it, or "". It scans the list of
// files only once, because it may be long.
func usedBy(files []string) []string {
	type pattern struct {
		before, after string // text around the *
		of            int    // index of the ecosystem
	}
	whole, patterns := map[string][]int{}, []pattern(nil)
	for i, e := range ecosystems {
		for _, name := range e.files {
			if before, after, found := strings.Cut(name, "*"); found {
				patterns = append(patterns, pattern{before, after, i})
			} else {
				whole[name] = append(whole[name], i)
			}
		}
	}
	found := make([]string, len(ecosystems))
	for _, file := range files {
		base := file[strings.LastIndexByte(file, '/')+1:]
		for _, i := range whole[base] {
			found[i] = cmp.Or(found[i], file)
		}
		for _, p := range patterns {
			if len(base) >= len(p.before)+len(p.after) && strings.HasPrefix(base, p.before) && strings.HasSuffix(base, p.after) {
				found[p.of] = cmp.Or(found[p.of], file)
			}
		}
	}
	return found
}

func matchName(pattern, name string) bool {
	ok, err := path.Match(pattern, name)
	return err == nil && ok
}

// defaults collects patterns.
type defaults struct{ list []Pattern }

func (d *defaults) add(p Pattern) {
	i := slices.IndexFunc(d.list, func(q Pattern) bool { return q.host == p.host && q.port == p.port && q.subdomains == p.subdomains })
	if i < 0 {
		d.list = append(d.list, p)
	} else if p.named && !d.list[i].named {
		d.list[i] = p
	}
}

// table adds hosts of coven's tables. They are on the internet: a private address of
// such a host is an attack or a mistake.
func (d *defaults) table(hosts []string, source string) {
	for _, text := range hosts {
		if p, err := parsePattern(text); err == nil {
			p.named, p.source = false, source
			d.add(p)
		}
	}
}

// named adds a host that a person chose.
func (d *defaults) named(text, source string) {
	if p, err := parsePattern(text); err == nil && !p.subdomains {
		p.source = source
		d.add(p)
	}
}

// url adds the host of an http or https URL, with its port if it has one.
func (d *defaults) url(text, source string) {
	u, err := url.Parse(text)
	if err == nil && (u.Scheme == "http" || u.Scheme == "https") {
		d.named(u.Host, source)
	}
}

// urls adds the hosts in a list of URLs in the notations of GOPROXY (a,b|c), pip (a b), uv
// (name=url) and Cargo (sparse+url). The first word of GOSUMDB may be a host (NAME+KEY URL), and so may
// JULIA_PKG_SERVER.
func (d *defaults) urls(text, key, source string) {
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(", |\t\n", r) }) {
		if i := strings.Index(word, "http"); i > 0 && strings.ContainsRune("+=", rune(word[i-1])) {
			word = word[i:]
		}
		name, _, _ := strings.Cut(word, "+")
		switch {
		case strings.Contains(word, "://"):
			d.url(word, source)
		case (key == "GOSUMDB" || key == "JULIA_PKG_SERVER") && strings.Contains(name, "."):
			d.named(name, source)
		}
	}
}

// remote adds the host of a remote, and the further hosts that its forge needs.
func (d *defaults) remote(text string) {
	name := remoteHost(text)
	if name == "" {
		return
	}
	h, err := parseHost(trimPort(name))
	if err != nil {
		return
	}
	if forge, ok := sshHosts[h.name]; ok {
		name, h.name = forge, forge
	}
	d.named(name, "remote "+h.String())
	d.table(forges[h.name], "remote "+h.String())
}

func trimPort(text string) string {
	name, _ := splitPort(text)
	return name
}

// remoteHost returns the host of a remote, with the port only for HTTP. It returns "" for a
// remote that is a directory or needs a git helper.
func remoteHost(text string) string {
	if strings.Contains(text, "://") {
		u, err := url.Parse(text)
		if err != nil {
			return ""
		}
		switch u.Scheme {
		case "http", "https":
			return u.Host
		case "ssh", "git", "git+ssh", "ssh+git":
			return trimPort(u.Host)
		}
		return ""
	}
	// [USER@]HOST:PATH, as in git@github.com:owner/name.git. Like in git, a text with an earlier
	// slash is a path, and so is C:\dir. HELPER::ADDRESS is for a helper.
	name, rest, ok := cutSCP(text)
	if !ok || strings.Contains(name, "/") || strings.HasPrefix(rest, ":") || len(name) == 1 {
		return ""
	}
	return name[strings.LastIndex(name, "@")+1:]
}

// cutSCP splits HOST:PATH. HOST may be an address in brackets.
func cutSCP(text string) (name, rest string, ok bool) {
	if i := strings.Index(text, "]:"); i >= 0 && strings.Contains(text[:i], "[") {
		return text[:i+1], text[i+2:], true
	}
	return strings.Cut(text, ":")
}
