package terminal

// Clip returns a text as one printable line of at most n characters.
func Clip(text string, n int) string {
	runes := []rune(Printable(OneLine(text)))
	if len(runes) > n {
		return string(runes[:n-1]) + "…"
	}
	return string(runes)
}

// Colon returns a colon and a text on one line; empty for an empty text.
func Colon(text string) string {
	if text = OneLine(text); text != "" {
		return ": " + text
	}
	return ""
}
