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
	"runtime/debug"
	"syscall"

	acli "monopod/agent/cli"
	"monopod/agent/cli/command"
)

// gcPercent is how much garbage may gather, in percent of what is in use. Measured at the
// start of an agent with 100 running pods: a third less memory than with Go's own 100, for
// 50 to 90 ms more CPU time.
const gcPercent = 30

func main() {
	runtime.MemProfileRate = 0 // nobody can ask for a profile, and its table takes a megabyte
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := command.Execute(ctx, acli.App(), os.Args[1:])
	stop()
	if err != nil && err.Error() != "" {
		fmt.Fprintln(os.Stderr, "monopod: "+err.Error())
	}
	os.Exit(command.ExitCode(err))
}
