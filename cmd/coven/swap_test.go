package main

import (
	"fmt"
	"os"
)

// swap is the program "swap FILE TARGET", an agent's attack on coven: until it is killed, it replaces the file by a link
// to the target and back.
func swap() {
	file, target := os.Args[1], os.Args[2]
	spare := file + ".log"
	for {
		for _, create := range []func() error{
			func() error { return os.Symlink(target, spare) },
			func() error { return os.WriteFile(spare, []byte("of the agent alone\n"), 0o644) },
		} {
			if err := create(); err != nil {
				fmt.Fprintln(os.Stderr, "swap:", err)
				os.Exit(1)
			}
			if err := os.Rename(spare, file); err != nil {
				fmt.Fprintln(os.Stderr, "swap:", err)
				os.Exit(1)
			}
		}
	}
}
