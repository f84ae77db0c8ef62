package main

import "github.com/spf13/cobra"

func newAttach(a *app) *cobra.Command { return &cobra.Command{Use: "attach TASK", Args: cobra.ExactArgs(1), RunE: showHelp} }
