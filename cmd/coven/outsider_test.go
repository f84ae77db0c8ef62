package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rogpeppe/go-internal/testscript"
)

// cmdOutsider implements outsider [-accept|-decline] list | TOOL [ARGUMENTS]: it starts coven mcp serve as
// an external program would, and prints the names of its tools or the answer of one. It can ask its user
// only with -accept or -decline, which is then the answer of the user; the question is printed, too. !
// means that the tool must fail.
func cmdOutsider(ts *testscript.TestScript, neg bool, args []string) {
	var answer string
	if len(args) > 0 && strings.HasPrefix(args[0], "-") {
		answer, args = args[0][1:], args[1:]
	}
	if len(args) != 1 && len(args) != 2 {
		ts.Fatalf("usage: outsider [-accept|-decline] list | TOOL [ARGUMENTS]")
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var mu sync.Mutex
	var asked []string
	options := &mcp.ClientOptions{}
	progress := func(message string) {
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, "progress: "+message)
	}
	if answer != "" {
		options.ElicitationHandler = func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			mu.Lock()
			defer mu.Unlock()
			asked = append(asked, r.Params.Message)
			return &mcp.ElicitResult{Action: answer, Content: map[string]any{"reason": "because"}}, nil
		}
	}
	program, err := lookPath("coven", ts.Getenv("PATH"))
	ts.Check(err)
	cmd := exec.CommandContext(ctx, program, "mcp", "serve")
	cmd.Dir, cmd.Env = ts.MkAbs("."), append(environment(ts), "COVEN_SCRIPT="+ts.Getenv("COVEN_SCRIPT"))
	var said strings.Builder
	cmd.Stderr = &said
	client := mcp.NewClient(&mcp.Implementation{Name: "outsider", Version: "1"}, options)
	session, err := client.Connect(ctx, &listener{&mcp.CommandTransport{Command: cmd}, nil, progress}, nil)
	if err != nil {
		cmd.Wait()                             //nolint:errcheck // it did not serve
		fmt.Fprint(ts.Stderr(), said.String()) //nolint:errcheck // a buffer
		if neg {
			return
		}
		ts.Fatalf("connect: %v: %s", err, said.String())
	}
	defer session.Close() //nolint:errcheck // the answer is there
	if args[0] == "list" {
		tools, err := session.ListTools(ctx, nil)
		ts.Check(err)
		for _, t := range tools.Tools {
			fmt.Fprintln(ts.Stdout(), t.Name) //nolint:errcheck // a buffer
		}
		return
	}
	arguments := json.RawMessage("{}")
	if len(args) == 2 {
		arguments = json.RawMessage(args[1])
	}
	params := &mcp.CallToolParams{Name: args[0], Arguments: arguments}
	params.SetProgressToken("p")
	result, err := session.CallTool(ctx, params)
	ts.Check(err)
	mu.Lock()
	defer mu.Unlock()
	texts := asked
	for _, c := range result.Content {
		texts = append(texts, c.(*mcp.TextContent).Text)
	}
	io.WriteString(ts.Stdout(), strings.Join(texts, "\n")+"\n") //nolint:errcheck // a buffer
	if result.IsError != neg {
		ts.Fatalf("the tool failed: %v\n%s", result.IsError, strings.Join(texts, "\n"))
	}
}

// listener is a transport that reports progress notifications as it reads them. The client's own handler may run after
// the result of the call is there.
type listener struct {
	mcp.Transport
	mcp.Connection
	progress func(message string)
}

// Connect implements mcp.Transport.
func (l *listener) Connect(ctx context.Context) (_ mcp.Connection, err error) {
	l.Connection, err = l.Transport.Connect(ctx)
	return l, err
}

// Read implements mcp.Connection.
func (l *listener) Read(ctx context.Context) (jsonrpc.Message, error) {
	message, err := l.Connection.Read(ctx)
	if r, ok := message.(*jsonrpc.Request); ok && r.Method == "notifications/progress" {
		var params mcp.ProgressNotificationParams
		if err := json.Unmarshal(r.Params, &params); err != nil {
			return nil, err
		}
		l.progress(params.Message)
	}
	return message, err
}
