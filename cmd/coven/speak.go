package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// say prints to standard output.
func (a *app) say(format string, args ...any) error {
	if _, err := fmt.Fprintf(a.out, format, args...); err != nil {
		return fmt.Errorf("write output: %w", err)
	}
	return nil
}

// sayJSON prints a value as indented JSON.
func (a *app) sayJSON(value any) error {
	enc := json.NewEncoder(a.out)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil {
		return fmt.Errorf("write output: %w", err)
	}
	return nil
}

// ask asks a person and returns the answer: one line, trimmed, lower case
// letters as they come. The end of the input is an empty answer.
func (a *app) ask(question string) (string, error) {
	if err := a.say("%s", question); err != nil {
		return "", err
	}
	line, err := readLine(a.in)
	if err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("read the answer: %w", err)
	}
	return strings.TrimSpace(line), nil
}

// readLine reads one line and not a byte more: the rest is for others.
func readLine(in io.Reader) (string, error) {
	if r, ok := in.(*bufio.Reader); ok {
		return r.ReadString('\n')
	}
	var line []byte
	for b := make([]byte, 1); ; {
		n, err := in.Read(b)
		if n == 1 {
			if b[0] == '\n' {
				return string(line), nil
			}
			line = append(line, b[0])
		}
		if err != nil {
			return string(line), err
		}
	}
}
