// Command monopod runs Kubernetes static pods on one machine, with nothing
// behind it: a folder of Pod manifests goes in, sandboxes and containers come
// out of a CRI runtime.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	acli "monopod/agent/cli"
	"monopod/agent/cli/command"
)

func main() {
	runtime.MemProfileRate = 0 // nobody can ask for a profile, and its table takes a megabyte
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := command.Execute(ctx, acli.App(), os.Args[1:])
	stop()
	if err != nil && err.Error() != "" {
		fmt.Fprintln(os.Stderr, "monopod: "+err.Error())
	}
	os.Exit(command.ExitCode(err))
}
