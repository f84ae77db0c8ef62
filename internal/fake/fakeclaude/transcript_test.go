package fakeclaude_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/coven-run/coven/internal/fake/fakeapi"
)

// event contains the parts of an event that are compared.
type event struct {
	Type, Subtype  string
	Tools          []string
	MCPServers     []struct{ Name, Status string } `json:"mcp_servers"`
	Attempt        int
	MaxRetries     int  `json:"max_retries"`
	ErrorStatus    *int `json:"error_status"`
	Error          string
	Message        struct{ Content json.RawMessage }
	UUID           string  `json:"uuid"`
	IsReplay       bool    `json:"isReplay"`
	IsError        bool    `json:"is_error"`
	APIErrorStatus *int    `json:"api_error_status"`
	NumTurns       int     `json:"num_turns"`
	Result         string  `json:"result"`
	StopReason     string  `json:"stop_reason"`
	TerminalReason string  `json:"terminal_reason"`
	SessionID      string  `json:"session_id"`
	RetryDelay     float64 `json:"retry_delay_ms"`
	RateLimit      struct {
		Status   string
		ResetsAt int64  `json:"resetsAt"`
		Type     string `json:"rateLimitType"`
		Overage  bool   `json:"isUsingOverage"`
	} `json:"rate_limit_info"`
	Piece struct {
		Type  string
		Delta struct {
			StopReason string `json:"stop_reason"`
		}
		Message struct{ Model string }
		Usage   struct {
			Out int `json:"output_tokens"`
		}
	} `json:"event"`
	Cost  float64 `json:"total_cost_usd"`
	Usage struct {
		In  int `json:"input_tokens"`
		Out int `json:"output_tokens"`
	}
	Denials []struct {
		Name string `json:"tool_name"`
	} `json:"permission_denials"`
}

type contentBlock struct {
	Type, Text, Name, ID string
	Input                map[string]any
	ToolUseID            string `json:"tool_use_id"`
	IsError              bool   `json:"is_error"`
	Content              json.RawMessage
}

// messageID is the prefix of message IDs; one character follows.
const messageID = "33333333-3333-4333-8333-33333333333"

var (
	costText     = regexp.MustCompile(`cost=\S+`)
	apiErrorText = regexp.MustCompile(`(API Error: \d+) .*`)
	loopback     = regexp.MustCompile(`127\.0\.0\.1:\d+`)
	resetTime    = regexp.MustCompile(`· resets .*"`)
)

// describe converts a run to lines that must be equal for both programs.
func (p *process) describe() []string {
	p.t.Helper()
	var lines []string
	calls := map[string]string{}
	for _, line := range p.lines {
		var e event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			p.t.Fatalf("not an event: %q", line)
		}
		lines = append(lines, e.lines(calls)...)
	}
	sortResults(lines)
	for i := range lines {
		if p.unpaid {
			lines[i] = costText.ReplaceAllString(lines[i], "cost=not-compared")
		}
	}
	lines = append(lines, "exit "+p.exit)
	if strings.Contains(p.tail, "{") {
		lines = append(lines, "tail "+p.tail)
	}
	return p.anonymous(lines)
}

// anonymous replaces the names of this world.
func (w *world) anonymous(lines []string) []string {
	replacer := strings.NewReplacer(w.cwd, "CWD", w.home, "HOME")
	for i, line := range lines {
		line = apiErrorText.ReplaceAllString(replacer.Replace(line), "$1")
		lines[i] = resetTime.ReplaceAllString(loopback.ReplaceAllString(line, "API"), `· resets TIME"`)
	}
	return lines
}

func (e event) lines(calls map[string]string) []string {
	if e.IsReplay {
		return []string{e.taken()}
	}
	switch e.Type + " " + e.Subtype {
	case "system init":
		return []string{fmt.Sprintf("init tools=%v servers=%v", e.Tools, e.MCPServers)}
	case "system api_retry":
		line := fmt.Sprintf("retry %d of %d: %s %s", e.Attempt, e.MaxRetries, number(e.ErrorStatus), e.Error)
		if e.RetryDelay >= longDelay {
			line += fmt.Sprintf(" in about %.0f0 minutes", e.RetryDelay/600_000) // up to a fifth or more is added
		}
		return []string{line}
	case "rate_limit_event ":
		return []string{fmt.Sprintf("limit %s %s overage=%t reset told: %t", e.RateLimit.Status, e.RateLimit.Type, e.RateLimit.Overage, e.RateLimit.ResetsAt > 0)}
	case "stream_event ":
		return e.pieceLines()
	case "assistant ", "user ":
		return blockLines(e.Message.Content, calls)
	}
	if e.Type == "command_lifecycle" { // the position in the CLI's queue; coven does not read it, and the fake does not report it
		return nil
	}
	if e.Type != "result" {
		return []string{"other " + e.Type + " " + e.Subtype}
	}
	names := []string{}
	for _, denial := range e.Denials {
		names = append(names, denial.Name)
	}
	return []string{fmt.Sprintf("result %s is_error=%t status=%s turns=%d stop=%s terminal=%s tokens=%d/%d cost=%.6f denials=%v text=%q",
		e.Subtype, e.IsError, number(e.APIErrorStatus), e.NumTurns, e.StopReason, e.TerminalReason, e.Usage.In, e.Usage.Out, e.Cost, names, e.Result)}
}

// longDelay is a delay in milliseconds that the API requests.
const longDelay = 60_000

// pieceLines returns the pieces of an answer that coven reads.
func (e event) pieceLines() []string {
	switch e.Piece.Type {
	case "message_start":
		return []string{"answer begins: " + e.Piece.Message.Model}
	case "message_delta":
		return []string{fmt.Sprintf("answer ends: %s after %d tokens", e.Piece.Delta.StopReason, e.Piece.Usage.Out)}
	}
	return nil
}

// taken returns a message that the CLI took, with its ID if the test chose it.
func (e event) taken() string {
	var blocks []contentBlock
	if err := json.Unmarshal(e.Message.Content, &blocks); err != nil {
		return "taken " + string(e.Message.Content)
	}
	said := "taken"
	if strings.HasPrefix(e.UUID, messageID) {
		said += " " + strings.TrimPrefix(e.UUID, messageID)
	}
	for _, block := range blocks {
		said += fmt.Sprintf(" %q", block.Text)
	}
	return said
}

func number(status *int) string {
	if status == nil {
		return "none"
	}
	return fmt.Sprint(*status)
}

func blockLines(content json.RawMessage, calls map[string]string) []string {
	var blocks []contentBlock
	if err := json.Unmarshal(content, &blocks); err != nil {
		return []string{"content " + string(content)}
	}
	var lines []string
	for _, block := range blocks {
		switch block.Type {
		case "tool_use":
			calls[block.ID] = fmt.Sprintf("%d:%s", len(calls)+1, block.Name)
			lines = append(lines, "call "+calls[block.ID]+" "+encode(block.Input))
		case "tool_result":
			lines = append(lines, "came of "+calls[block.ToolUseID]+" "+block.outcome())
		default:
			lines = append(lines, fmt.Sprintf("%s %q", block.Type, block.Text))
		}
	}
	return lines
}

// outcome returns one word for an outcome that coven must distinguish.
func (b contentBlock) outcome() string {
	text := string(b.Content)
	switch {
	case !b.IsError:
		return "ok"
	case strings.Contains(text, "<tool_use_error>") || strings.Contains(text, `\u003ctool_use_error`):
		return "refused"
	case strings.Contains(text, "policy says no"):
		return "denied"
	default:
		return "failed"
	}
}

// sortResults sorts adjacent tool results, because concurrent calls
// end in any order.
func sortResults(lines []string) {
	for start := 0; start < len(lines); start++ {
		end := start
		for end < len(lines) && strings.HasPrefix(lines[end], "came of ") {
			end++
		}
		slices.Sort(lines[start:end])
		start = max(start, end-1)
	}
}

// aftermath returns the traces of the run: questions, requests, files.
func (w *world) aftermath() []string {
	w.t.Helper()
	var lines []string
	for _, one := range w.asked() {
		if one.ToolName != "" {
			lines = append(lines, "asked "+one.ToolName+" "+encode(one.Input))
		}
	}
	slices.Sort(lines)
	for _, request := range w.turns() {
		status := ""
		if request.Status >= 400 { // a lower status depends on when the server notices that a killed client is gone
			status = fmt.Sprintf(" %d", request.Status)
		}
		lines = append(lines, fmt.Sprintf("request for turn %d:%s tools=%v", request.Turn, status, request.Tools))
	}
	return w.anonymous(append(lines, w.files()...))
}

// turns returns the requests to the model.
func (w *world) turns() []fakeapi.Request {
	return slices.DeleteFunc(w.api.Requests(), func(r fakeapi.Request) bool { return r.Kind != fakeapi.KindTurn })
}

func (w *world) files() []string {
	w.t.Helper()
	var lines []string
	check(w.t, filepath.WalkDir(w.cwd, func(path string, item fs.DirEntry, err error) error {
		if err != nil || item.IsDir() || item.Name() == "started" {
			return err
		}
		data, err := os.ReadFile(path)
		content := string(data)
		if strings.HasSuffix(path, ".ipynb") { // its layout is not specified
			content = fmt.Sprintf("notebook with y=2: %t", strings.Contains(content, "y=2"))
		}
		lines = append(lines, fmt.Sprintf("file %s %q", path, content))
		return err
	}))
	return lines
}
