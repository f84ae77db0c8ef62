package tmpl

import (
	"errors"
	"os/exec"
	"strings"
	"testing"
)

func TestSecret(t *testing.T) {
	data := map[string]any{"secrets": map[string]any{"key": Secret{"key"}}, "x": "a\x00key\x00b", "y": "it's"}
	got, err := Command("c", "curl -H {{.secrets.key}} {{.y}}", data)
	if err != nil || got != `curl -H "$COVEN_SECRET_key" 'it'\''s'` {
		t.Errorf("command: %s, %v", got, err)
	}
	value, err := Variable("v", "Bearer {{.secrets.key}}!", data)
	if err != nil {
		t.Fatal(err)
	}
	reveal := func(name string) (string, error) { return "<" + name + ">", nil }
	if got, err := Reveal(value, reveal); err != nil || got != "Bearer <key>!" {
		t.Errorf("variable: %q, %v", got, err)
	}
	if _, err := Reveal(value, func(string) (string, error) { return "", errors.New("none") }); err == nil {
		t.Error("a secret that is missing is none")
	}
	// Values cannot forge a mark.
	if got, err := Variable("v", "{{.x}}", data); err == nil {
		t.Errorf("a value with a NUL: %q", got)
	}
	for _, text := range []string{
		"{{.secrets.key | upper}}", "{{json .secrets.key}}", "{{.secrets}}", "{{raw .secrets.key}}", `{{join "," .secrets}}`, "{{quote .secrets.key}}",
		"{{indent 2 .secrets.key}}",
	} {
		for form, render := range map[string]func(name, text string, data map[string]any) (string, error){"command": Command, "variable": Variable, "text": Text} {
			if got, err := render("t", text, data); err == nil {
				t.Errorf("%s, %s: %q", form, text, got)
			}
		}
	}
	if got, err := Text("t", "{{.secrets.key}}", data); err == nil || !strings.Contains(err.Error(), "can only be used alone") {
		t.Errorf("text: %q, %v", got, err)
	}
	if got, err := Command("t", `{{printf "%v %s" .secrets.key .secrets.key}}`, data); err != nil || got != "'*** ***'" {
		t.Errorf("printf: %q, %v", got, err)
	}
}

// The value of a secret remains one word for the shell.
func TestSecretInShell(t *testing.T) {
	data := map[string]any{"secrets": map[string]any{"key": Secret{"key"}}}
	command, err := Command("c", "printf '<%s>' a{{.secrets.key}}b {{.secrets.key}}", data)
	if err != nil {
		t.Fatal(err)
	}
	sh := exec.CommandContext(t.Context(), "sh", "-c", command)
	const value = "$(touch x) ' \" \\ `id`\n*"
	sh.Env = []string{SecretVariable("key") + "=" + value}
	out, err := sh.Output()
	if err != nil || string(out) != "<a"+value+"b><"+value+">" {
		t.Errorf("%q, %v", out, err)
	}
}
