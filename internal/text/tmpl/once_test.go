package tmpl

// Command renders a command once.
func Command(name, text string, data map[string]any) (string, error) {
	return NewCommand(name, text).Render(data)
}

// Bool renders a condition once.
func Bool(name, text string, data map[string]any) (bool, error) {
	return NewCondition(name, text).Bool(data)
}
