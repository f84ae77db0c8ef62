package main

import "github.com/spf13/cobra"

type completion int

const (
	forRun completion = iota
	underWay
	waiting
	all
)

func (a *app) completeTasks(_ completion) cobra.CompletionFunc { return nil }
