package fakeapi

import (
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"testing"
)

func TestSpoken(t *testing.T) {
	qwen := []string{"read_file", "edit", "run_shell_command"}
	write := map[string]any{"file_path": "/t/it's", "content": "a'b\n"}
	edit := map[string]any{"file_path": "/t/a", "old_string": "x", "new_string": "y"}
	for _, test := range []struct {
		offered []string
		tool    Tool
		want    Tool
	}{
		{[]string{"Write", "write_file"}, Tool{"Write", write}, Tool{"Write", write}},
		{append(qwen, "write_file"), Tool{"Write", write}, Tool{"write_file", write}},
		{qwen, Tool{"Write", write}, Tool{"edit", map[string]any{"file_path": "/t/it's", "old_string": "", "new_string": "a'b\n"}}},
		{qwen, Tool{"Edit", edit}, Tool{"edit", edit}},
		{qwen, Tool{"Read", map[string]any{"file_path": "/t/a"}}, Tool{"read_file", map[string]any{"file_path": "/t/a"}}},
		{qwen, Tool{"WebFetch", nil}, Tool{"WebFetch", nil}},
		{[]string{"exec_command"}, Tool{"Bash", map[string]any{"command": "ls"}}, Tool{"exec_command", map[string]any{"cmd": "ls"}}},
		{[]string{"exec_command"}, Tool{"Read", map[string]any{"file_path": "/t/a"}}, Tool{"exec_command", map[string]any{"cmd": "cat '/t/a'"}}},
		{[]string{"exec_command"}, Tool{"Edit", edit}, Tool{"Edit", edit}},
		{nil, Tool{"Bash", map[string]any{"command": "ls"}}, Tool{"Bash", map[string]any{"command": "ls"}}},
	} {
		turn := Turn{Tools: []Tool{test.tool}}.spoken(test.offered)
		if got := turn.Tools[0]; !reflect.DeepEqual(got, test.want) {
			t.Errorf("%v of %v:\ngot  %v\nwant %v", test.tool, test.offered, got, test.want)
		}
	}
}

// The command for Write has the same effect as Write.
func TestWriteCommand(t *testing.T) {
	file := filepath.Join(t.TempDir(), "it's a dir", "file")
	const content = "it's\n\\n %s $HOME\n"
	tool := Tool{"Write", map[string]any{"file_path": file, "content": content}}
	if out, err := exec.CommandContext(t.Context(), "sh", "-c", tool.command()).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if got, err := os.ReadFile(file); err != nil || string(got) != content {
		t.Errorf("%q, %v", got, err)
	}
}
