package main

import (
	"fmt"
	"net"
	"os"
)

// dial is the program "dial": it connects to a socket, @NAME for an abstract one.
func dial() {
	conn, err := net.Dial("unix", os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, "dial:", err)
		os.Exit(1)
	}
	_ = conn.Close()
}

// listen is the program "listen": it listens on sockets until it is killed.
func listen() {
	for _, name := range os.Args[1:] {
		listener, err := net.Listen("unix", name)
		if err != nil {
			fmt.Fprintln(os.Stderr, "listen:", err)
			os.Exit(1)
		}
		go func() {
			for {
				conn, err := listener.Accept()
				if err != nil {
					fmt.Fprintln(os.Stderr, "listen:", err)
					os.Exit(1)
				}
				_ = conn.Close()
			}
		}()
	}
	select {}
}
