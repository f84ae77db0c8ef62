package file

import (
	"encoding/json"
	"os"
	"path/filepath"

	"github.com/coven-run/coven/internal/file/regularfile"
)

// ReadJSON decodes a JSON file.
func ReadJSON(path string, value any) error {
	raw, err := readOwn(path)
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, value)
}

// WriteJSON replaces a JSON file atomically and durably. It creates the directory if necessary.
func WriteJSON(path string, value any) error {
	raw, err := encode(path, value)
	if err != nil {
		return err
	}
	return regularfile.Replace(path, append(raw, '\n'), 0o644)
}

// WriteJSONNoSync is WriteJSON without syncing. A power failure may lose the new content.
func WriteJSONNoSync(path string, value any) error {
	raw, err := encode(path, value)
	if err != nil {
		return err
	}
	return WriteNoSync(path, raw)
}

// encode returns the content of a JSON file, and creates its directory.
func encode(path string, value any) ([]byte, error) {
	raw, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	return raw, os.MkdirAll(filepath.Dir(path), 0o755)
}
