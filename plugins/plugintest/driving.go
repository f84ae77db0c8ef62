package plugintest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/coven-run/coven/plugins/pluginerr"
	"github.com/coven-run/coven/plugins/provider"
)

// driving returns the cases of providers.
func driving() []testcase {
	return []testcase{
		{"command", "Command returns a program and an account", startsCLI},
		{"prompt", "arguments and variables, which other users can read, contain no text of the task", hidesPrompt},
		{"files", "files for the CLI have unique base names", namesFiles},
		{"gate", "a gated command passes coven's gate to its CLI: the program, the variables and the deciding tool", handsGate},
		{"capabilities", "the answers of a provider match the capabilities that it declares", keepsDeclaration},
		{"resume", "a conversation is resumed by its ID, or the error is UNIMPLEMENTED", resumes},
		{"parse nothing", "empty output results in no event and no error", parsesNothing},
		{"parse anything", "foreign output causes no error and no crash", parsesAnything},
		{"parse statelessly", "the same lines result in the same events, together or line by line", parsesAlike},
		{"answer", "a request of the CLI that is refused gets an answer", answersRequests},
		{"message", "a message is encoded, or the error is UNIMPLEMENTED", takesMessage},
	}
}

// Texts that must not appear in arguments and variables.
const (
	secretPrompt = "Paint the shed violet-4711"
	secretSystem = "Be polite-4712"
)

// request returns a simple request.
func request() provider.Request {
	return provider.Request{
		Conversation: "0b8f9c52-6b0e-4a53-9d6e-0a4c5f0f6f11", Prompt: secretPrompt, System: secretSystem,
		Tools:    []string{provider.ToolRead, provider.ToolWrite, provider.ToolEdit, provider.ToolBash},
		FilesDir: "/tmp/coven-files", Gate: provider.Server{Name: "coven", Argv: []string{"/usr/bin/coven", "gate"}, Env: []string{"COVEN_GATE=1"}},
		GateTool: "approve",
	}
}

// provider calls use with the plugin, within the time limit of an answer. It skips the case if the plugin
// does not work.
func (s *suite) provider(ctx context.Context, use func(ctx context.Context, p provider.Provider) error) error {
	if err := s.working(); err != nil {
		return err
	}
	return s.within(ctx, func(ctx context.Context) error {
		p, err := s.plugin().Provider(ctx)
		if err != nil {
			return err
		}
		return use(ctx, p)
	})
}

// asked returns the plugin's command for a request.
func (s *suite) asked(ctx context.Context, req provider.Request) (cmd provider.Command, err error) {
	err = s.provider(ctx, func(ctx context.Context, p provider.Provider) error {
		cmd, err = p.Command(ctx, req)
		return err
	})
	return cmd, err
}

func startsCLI(ctx context.Context, s *suite) error {
	cmd, err := s.asked(ctx, request())
	switch {
	case err != nil:
		return err
	case len(cmd.Argv) == 0 || cmd.Argv[0] == "":
		return errors.New("the command has no program")
	case cmd.Account == "":
		return errors.New("the command has no account")
	}
	for _, kv := range cmd.Env {
		if name, _, ok := strings.Cut(kv, "="); !ok || name == "" {
			return fmt.Errorf("variable %s is not KEY=VALUE", quoted(kv))
		}
	}
	for _, name := range cmd.Pass {
		if strings.Contains(name, "=") || strings.TrimSuffix(name, "*") == "" {
			return fmt.Errorf("%s in Pass is not a variable name", quoted(name))
		}
	}
	return nil
}

func hidesPrompt(ctx context.Context, s *suite) error {
	cmd, err := s.asked(ctx, request())
	if err != nil {
		return err
	}
	for _, text := range append(slices.Clone(cmd.Argv), cmd.Env...) {
		for _, word := range []string{secretPrompt, secretSystem} {
			if strings.Contains(text, word) {
				return fmt.Errorf("%s contains text of the task", quoted(text))
			}
		}
	}
	given := slices.Clone(cmd.Input)
	for _, f := range cmd.Files {
		given = append(given, f.Content...)
	}
	if !bytes.Contains(given, []byte(secretPrompt)) && !s.answers(ctx) { // an Answerer can pass the prompt in an answer
		return errors.New("neither the input nor the files contain the prompt")
	}
	return nil
}

func namesFiles(ctx context.Context, s *suite) error {
	cmd, err := s.asked(ctx, request())
	if err != nil {
		return err
	}
	seen := map[string]bool{}
	for _, f := range cmd.Files {
		switch {
		case f.Name == "" || f.Name == "." || f.Name == ".." || filepath.Base(f.Name) != f.Name || strings.ContainsAny(f.Name, "\\\x00"):
			return fmt.Errorf("%s is not a base name", quoted(f.Name))
		case seen[f.Name]:
			return fmt.Errorf("two files are named %s", quoted(f.Name))
		}
		seen[f.Name] = true
	}
	return nil
}

// Unique values of the gate, which do not appear in a command by accident.
const (
	gateSecret = "4f1c-gate-token-9a27"
	gateTool   = "decide_4713"
)

func handsGate(ctx context.Context, s *suite) error {
	req := request()
	req.Gate.Argv = []string{"/opt/coven-4714/coven", "gate"}
	req.Gate.Env = []string{"COVEN_GATE_TOKEN=" + gateSecret}
	req.GateTool = gateTool
	cmd, err := s.asked(ctx, req)
	switch {
	case err != nil:
		return err
	case !cmd.Gated:
		return skipf("the command is not gated")
	}
	all := given(cmd)
	for what, word := range map[string]string{
		"the gate's program": req.Gate.Argv[0], "the gate's variables": gateSecret, "the tool that decides": gateTool,
	} {
		if !strings.Contains(all, word) {
			return fmt.Errorf("the command is gated but does not contain %s (%s)", what, word)
		}
	}
	return nil
}

// given returns everything that a command passes to its CLI.
func given(cmd provider.Command) string {
	all := strings.Join(slices.Concat(cmd.Argv, cmd.Env), "\n") + "\n" + string(cmd.Input)
	for _, f := range cmd.Files {
		all += "\n" + string(f.Content)
	}
	return all
}

func resumes(ctx context.Context, s *suite) error {
	req := request()
	req.Resume = true
	cmd, err := s.asked(ctx, req)
	switch {
	case errors.Is(err, pluginerr.ErrUnsupported):
		return skipf("not supported: %v", err)
	case err != nil:
		return err
	case len(cmd.Argv) == 0:
		return errors.New("the command has no program")
	}
	if !strings.Contains(given(cmd), req.Conversation) && !s.answers(ctx) {
		return errors.New("the command does not contain the conversation ID")
	}
	return nil
}

func keepsDeclaration(ctx context.Context, s *suite) error {
	can, err := s.declared()
	if err != nil {
		return err
	}
	seen, err := s.capabilities(ctx)
	if err != nil {
		return err
	}
	if can == nil {
		return skipf("it declares no capabilities; to show users what its agents can do, add this text to the file: %s", seen)
	}
	for _, one := range provider.AllCapabilities() {
		if can.Has(one) != seen.Has(one) {
			return fmt.Errorf("it declares %s but behaves as %s", can, seen)
		}
	}
	return nil
}

// declared returns the capabilities that the plugin declares, or nil.
func (s *suite) declared() (provider.Capabilities, error) {
	if s.options.Capabilities != nil {
		return s.options.Capabilities, nil
	}
	f, err := os.Open(s.binary)
	if err != nil {
		return nil, skipf("the program cannot be read: %v", err)
	}
	defer f.Close() //nolint:errcheck // read only
	var d provider.Declaration
	if _, err := io.Copy(&d, f); err != nil {
		return nil, fmt.Errorf("read the program: %w", err)
	}
	return d.Capabilities()
}

// capabilities returns the capabilities that the plugin's answers show.
func (s *suite) capabilities(ctx context.Context) (provider.Capabilities, error) {
	seen := provider.Capabilities{}
	note := func(one provider.Capability, has bool) {
		if has {
			seen = append(seen, one)
		}
	}
	cmd, err := s.asked(ctx, request())
	if err != nil {
		return nil, err
	}
	note(provider.Gated, cmd.Gated)
	again := request()
	again.Resume = true
	_, err = s.asked(ctx, again)
	note(provider.Resume, err == nil)
	err = s.provider(ctx, func(ctx context.Context, p provider.Provider) error {
		_, err := p.Message(ctx, provider.Message{ID: messageID, Text: "use the existing parser"})
		return err
	})
	note(provider.Messages, err == nil && !cmd.Once)
	reads := request()
	reads.Tools = []string{provider.ToolRead}
	cmd, err = s.asked(ctx, reads)
	note(provider.ReadOnly, err == nil && cmd.ReadOnly)
	return seen, nil
}

// parse calls Parse.
func (s *suite) parse(ctx context.Context, lines []byte) (events []provider.Event, err error) {
	err = s.provider(ctx, func(ctx context.Context, p provider.Provider) error {
		events, err = p.Parse(ctx, lines)
		return err
	})
	return events, err
}

func parsesNothing(ctx context.Context, s *suite) error {
	events, err := s.parse(ctx, nil)
	if err == nil && len(events) > 0 {
		err = fmt.Errorf("empty output results in %d events", len(events))
	}
	return err
}

func parsesAnything(ctx context.Context, s *suite) error {
	for _, text := range garbage() {
		if _, err := s.parse(ctx, text); err != nil {
			return fmt.Errorf("the output %s: %w", quoted(string(text[:min(len(text), maxQuoted)])), err)
		}
	}
	return nil
}

// garbage returns outputs that no CLI prints.
func garbage() [][]byte {
	var all [][]byte
	for _, text := range []string{
		"\n", "\n\n\n", "hello\n", "{\n", "{}\n", "[]\n", "null\n", "0\n", `""` + "\n", "\x00\n", "\xff\xfe\xfd\n", "\x1b[31mred\x1b[0m\r\n", "no newline",
		`{"type":null}` + "\n", `{"type":7,"message":[]}` + "\n", `{"type":"assistant","message":{"content":"x"}}` + "\n",
		`{"type":"result","result":{"a":1},"usage":"much"}` + "\n", `{"type":"system","subtype":[]}` + "\n", `{"type":"item.completed","item":7}` + "\n",
		`{"type":"user","message":{"content":[null,{"type":"tool_result","content":{}}]}}` + "\n",
		strings.Repeat(`{"a":`, 20_000) + "\n", strings.Repeat("x", 4<<20) + "\n", strings.Repeat("\n", 10_000),
	} {
		all = append(all, []byte(text))
	}
	noise := make([]byte, 64<<10)
	state := uint32(1)
	for i := range noise {
		state = state*1664525 + 1013904223
		noise[i] = byte(state >> 24)
	}
	return append(all, append(noise, '\n'))
}

func parsesAlike(ctx context.Context, s *suite) error {
	transcript := s.options.Transcript
	if len(transcript) == 0 {
		transcript = bytes.Join(slices.DeleteFunc(garbage(), func(text []byte) bool { return !bytes.HasSuffix(text, []byte("\n")) || len(text) > 1<<20 }), nil)
	}
	whole, err := s.parse(ctx, transcript)
	if err != nil {
		return err
	}
	again, err := s.parse(ctx, transcript)
	if err != nil {
		return err
	}
	if !reflect.DeepEqual(whole, again) {
		return errors.New("parsing the same lines again resulted in different events")
	}
	var each []provider.Event
	for line := range bytes.Lines(transcript) {
		if len(line) == 1 {
			continue
		}
		events, err := s.parse(ctx, line)
		if err != nil {
			return err
		}
		each = append(each, events...)
	}
	if !reflect.DeepEqual(whole, each) {
		return fmt.Errorf("parsing the lines together resulted in %d events, line by line in %d or different ones", len(whole), len(each))
	}
	if len(s.options.Transcript) > 0 && len(whole) == 0 {
		return errors.New("the transcript resulted in no event")
	}
	return nil
}

// answer calls Answer.
func (s *suite) answer(ctx context.Context, a provider.Answer) (reply provider.Reply, err error) {
	err = s.provider(ctx, func(ctx context.Context, p provider.Provider) error {
		answerer, ok := p.(provider.Answerer)
		if !ok {
			return pluginerr.ErrUnsupported
		}
		reply, err = answerer.Answer(ctx, a)
		return err
	})
	return reply, err
}

// answers reports whether the plugin answers requests of its CLI.
func (s *suite) answers(ctx context.Context) bool {
	_, err := s.answer(ctx, provider.Answer{Request: request()})
	return !errors.Is(err, pluginerr.ErrUnsupported)
}

func answersRequests(ctx context.Context, s *suite) error {
	if !s.answers(ctx) {
		return skipf("not supported")
	}
	events, err := s.parse(ctx, s.options.Transcript)
	if err != nil {
		return err
	}
	tried := 0
	for _, e := range events {
		asked, ok := e.(provider.Asked)
		if !ok || asked.Action == nil && len(asked.Calls) == 0 {
			continue
		}
		tried++
		reply, err := s.answer(ctx, provider.Answer{Request: request(), Asked: asked, Reason: "not now"})
		if err != nil {
			return fmt.Errorf("request %s: %w", quoted(asked.ID), err)
		}
		if len(reply.Input) == 0 {
			return fmt.Errorf("request %s gets no answer, so the CLI waits for ever", quoted(asked.ID))
		}
	}
	if tried == 0 {
		return skipf("the transcript contains no request; give one with --transcript")
	}
	return nil
}

const messageID = "5f2a7a53-3a3f-4a87-a3a6-6f0f3f8f5a10"

func takesMessage(ctx context.Context, s *suite) error {
	return s.provider(ctx, func(ctx context.Context, p provider.Provider) error {
		for _, text := range []string{"use the existing parser", "/clear", "@/etc/passwd", "two\nlines", "файл 名 🦉", strings.Repeat("long ", 100_000)} {
			input, err := p.Message(ctx, provider.Message{ID: messageID, Text: text})
			switch {
			case errors.Is(err, pluginerr.ErrUnsupported):
				return nil
			case err != nil:
				return fmt.Errorf("the message %s: %w", quoted(text), err)
			case len(input) == 0:
				return fmt.Errorf("the message %s was encoded as nothing", quoted(text))
			}
		}
		return nil
	})
}
