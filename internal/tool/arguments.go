package tool

import (
	"context"
	"encoding/json"
	"fmt"
)

// Decoded returns a Tool.Call function that decodes its arguments to T. They must match the schema.
func Decoded[T any](do func(context.Context, T) (string, error)) func(context.Context, json.RawMessage) (string, error) {
	return func(ctx context.Context, arguments json.RawMessage) (string, error) {
		var in T
		if err := json.Unmarshal(arguments, &in); err != nil {
			return "", fmt.Errorf("the arguments cannot be read: %w", err)
		}
		return do(ctx, in)
	}
}
