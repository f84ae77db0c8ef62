package command

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/coven-run/coven/internal/text/lazyregexp"
	"github.com/coven-run/coven/plugins/reviewer"
)

// lineRE matches the output of compilers and linters: file:line: message or file:line:column: message, with
// an optional severity before the message.
var lineRE = lazyregexp.New(`^(?:\./)?([^:\s][^:]*):(\d+):(?:\d+:)?\s*(?:(?i:(error|warning|info|note)):\s*)?(\S.*)$`)

// maxLine limits the part of a line that is read, in bytes. It exceeds the limit of the contract.
const maxLine = 64 << 10

// lines parses findings, one per line, and skips other lines.
func lines(output []byte, dir string, otherwise reviewer.Severity) []reviewer.Finding {
	var found []reviewer.Finding
	for line := range strings.Lines(string(output)) {
		m := lineRE.FindStringSubmatch(strings.TrimRight(line[:min(len(line), maxLine)], "\r\n"))
		if m == nil {
			continue
		}
		number, err := strconv.Atoi(m[2])
		if err != nil || !exists(dir, m[1]) {
			continue // a time of day, an address
		}
		found = append(found, finding(dir, m[1], number, severityOf(m[3], otherwise), m[4], ""))
	}
	return found
}

func exists(dir, file string) bool {
	if !filepath.IsAbs(file) {
		file = filepath.Join(dir, file)
	}
	_, err := os.Stat(file)
	return err == nil
}

func severityOf(word string, otherwise reviewer.Severity) reviewer.Severity {
	switch strings.ToLower(word) {
	case "error":
		return reviewer.Error
	case "warning":
		return reviewer.Warning
	case "info", "note", "none":
		return reviewer.Info
	}
	return otherwise
}

// finding returns a finding with a path that satisfies the contract. A finding outside the worktree becomes
// one about the whole change, with the path in its message.
func finding(dir, file string, line int, severity reviewer.Severity, message, suggestion string) reviewer.Finding {
	f := reviewer.Finding{Severity: severity, Message: clip(message), Suggestion: clip(suggestion)}
	if file == "" {
		return f
	}
	place := file
	if filepath.IsAbs(place) {
		if rel, err := filepath.Rel(dir, place); err == nil {
			place = rel
		}
	}
	place = strings.ToValidUTF8(filepath.Clean(place), "\uFFFD")
	if !filepath.IsLocal(place) || place == "." || strings.ContainsAny(place, "\x00\r\n") {
		f.Message = clip(fmt.Sprintf("%s:%d: %s", file, line, message))
		return f
	}
	f.File, f.Line = filepath.ToSlash(place), max(line, 0)
	return f
}

// clip makes a text valid for the contract.
func clip(text string) string { return reviewer.Clip(strings.ToValidUTF8(text, "\uFFFD")) }

// log contains the parts of a SARIF 2.1.0 log that are used.
type log struct {
	Runs []struct {
		Tool struct {
			Driver     component   `json:"driver"`
			Extensions []component `json:"extensions"`
		} `json:"tool"`
		Results []result `json:"results"`
	} `json:"runs"`
}

type component struct {
	Rules []rule `json:"rules"`
}

type rule struct {
	ID      string `json:"id"`
	Default struct {
		Level string `json:"level"`
	} `json:"defaultConfiguration"`
}

type result struct {
	RuleID    string `json:"ruleId"`
	RuleIndex *int   `json:"ruleIndex"`
	Level     string `json:"level"`
	Kind      string `json:"kind"`
	Message   struct {
		Text string `json:"text"`
	} `json:"message"`
	Suppressions []struct {
		Status string `json:"status"` // the default is accepted
	} `json:"suppressions"`
	Locations []struct {
		Physical struct {
			Artifact struct {
				URI string `json:"uri"`
			} `json:"artifactLocation"`
			Region struct {
				StartLine int `json:"startLine"`
			} `json:"region"`
		} `json:"physicalLocation"`
	} `json:"locations"`
	Fixes []struct {
		Description struct {
			Text string `json:"text"`
		} `json:"description"`
	} `json:"fixes"`
}

// sarif parses findings from a SARIF log. It skips suppressed and passing results.
func sarif(output []byte, dir string, otherwise reviewer.Severity) ([]reviewer.Finding, error) {
	var l log
	if err := json.Unmarshal(bytes.TrimPrefix(output, []byte("\uFEFF")), &l); err != nil { // some tools write a byte order mark
		return nil, err
	}
	if l.Runs == nil {
		return nil, fmt.Errorf("no runs")
	}
	var found []reviewer.Finding
	for _, run := range l.Runs {
		rules := run.Tool.Driver.Rules
		for _, extension := range run.Tool.Extensions {
			rules = append(rules, extension.Rules...)
		}
		for _, r := range run.Results {
			if r.suppressed() || r.Kind != "" && r.Kind != "fail" && r.Kind != "review" {
				continue
			}
			found = append(found, r.finding(dir, r.severity(rules, otherwise)))
		}
	}
	return found, nil
}

// suppressed reports whether a result has an accepted suppression.
func (r result) suppressed() bool {
	for _, s := range r.Suppressions {
		if s.Status != "" && s.Status != "accepted" {
			return false
		}
	}
	return len(r.Suppressions) > 0
}

// severity returns the level of the result, or of its rule, which is identified by ID or index. The default
// is the severity option, not SARIF's warning.
func (r result) severity(rules []rule, otherwise reviewer.Severity) reviewer.Severity {
	level := r.Level
	for i, rule := range rules {
		if level == "" && (r.RuleID != "" && rule.ID == r.RuleID || r.RuleID == "" && r.RuleIndex != nil && *r.RuleIndex == i) {
			level = rule.Default.Level
		}
	}
	return severityOf(level, otherwise)
}

func (r result) finding(dir string, severity reviewer.Severity) reviewer.Finding {
	message, suggestion, file, line := strings.TrimSpace(r.Message.Text), "", "", 0
	message = cmp.Or(message, "(no message)")
	if r.RuleID != "" {
		message += " (" + r.RuleID + ")"
	}
	if len(r.Fixes) > 0 {
		suggestion = r.Fixes[0].Description.Text
	}
	if len(r.Locations) > 0 {
		file, line = pathOf(r.Locations[0].Physical.Artifact.URI), r.Locations[0].Physical.Region.StartLine
	}
	return finding(dir, file, line, severity, message, suggestion)
}

// pathOf returns the path of an artifact.
func pathOf(uri string) string {
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != "" && u.Scheme != "file" {
		return ""
	}
	return u.Path
}
