package file

import (
	"encoding/json"
	"os"
	"path/filepath"

	"github.com/coven-run/coven/internal/file/regularfile"
)

// ReadJSON decodes a JSON file.
func ReadJSON(path string, value any) error {
	raw, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, value)
}

// WriteJSON replaces a JSON file atomically and durably. It creates the directory if necessary.
func WriteJSON(path string, value any) error {
	raw, err := json.Marshal(value)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return regularfile.Replace(path, append(raw, '\n'), 0o644)
}

// WriteJSONNoSync is WriteJSON without syncing. A power failure may lose the new content.
func WriteJSONNoSync(path string, value any) error {
	raw, err := json.Marshal(value)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return WriteNoSync(path, raw)
}
