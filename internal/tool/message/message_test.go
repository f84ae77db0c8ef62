package message_test

import (
	"encoding/json"
	"io/fs"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/coven-run/coven/internal/agent/channel"
	"github.com/coven-run/coven/internal/tool"
	"github.com/coven-run/coven/internal/tool/message"
)

// Neither a message nor a file name contains a secret.
func TestSecret(t *testing.T) {
	dir := t.TempDir()
	tools := message.Tools(message.Agent{
		Channels: channel.New(dir, time.Now), Name: "build",
		Hide: func(text string) string { return strings.ReplaceAll(text, "hunter2", "***") },
	})
	send, _ := tool.Find(tools, tool.SendMessage.Name)
	for arguments, want := range map[string]string{
		`{"channel":"open","text":"it is hunter2"}`: "",
		`{"channel":"hunter2","text":"x"}`:          `"***" is not the name of a channel`,
	} {
		if _, err := send.Call(t.Context(), json.RawMessage(arguments)); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", arguments, err)
		}
	}
	read, _ := tool.Find(tools, tool.ReadMessages.Name)
	if text, err := read.Call(t.Context(), json.RawMessage(`{"channel":"open"}`)); text != `{"last":1,"messages":[{"n":1,"from":"build","text":"it is ***"}]}` || err != nil {
		t.Errorf("%s, %v", text, err)
	}
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := fs.ReadFile(os.DirFS(dir), path)
		if strings.Contains(path+string(content), "hunter2") {
			t.Errorf("%s: %s", path, content)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
