package process

// helpers are programs that tests start, by name.
var helpers map[string]func(args []string)
