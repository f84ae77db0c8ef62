// Command serve serves a scenario of package fakeapi, for tests outside of this module. It prints the URL, and ends with its standard input.
package main

import (
	"fmt"
	"io"
	"os"

	"github.com/coven-run/coven/internal/fake/fakeapi"
)

func main() {
	if err := serve(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "serve:", err)
		os.Exit(1)
	}
}

func serve(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("usage: serve SCENARIO")
	}
	scenario, err := fakeapi.Load(args[0])
	if err != nil {
		return err
	}
	server, err := fakeapi.New(scenario)
	if err != nil {
		return err
	}
	fmt.Println(server.URL)
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}
