// Command coven turns tasks into merged, verified changes with coding agents.
//
// This package parses, wires the parts together and prints; it is the only one
// that knows all of them. There is one file per command.
package main

import "os"

func main() { os.Exit(run(newApp(), os.Args[1:])) }
