//go:build !linux

package main

import "os"

func without() { os.Exit(125) }
