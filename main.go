// The number of processors is not looked at every five seconds: the agent would wake for that.
//
//go:debug updatemaxprocs=0

// Command monopod runs Kubernetes static pods on one machine, with nothing
// behind it: a folder of Pod manifests goes in, sandboxes and containers come
// out of a CRI runtime.
package main

import (
	"context"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"
	"time"

	acli "monopod/agent/cli"
	"monopod/agent/cli/command"
)

// gcPercent is how much garbage may gather, in percent of what is in use. Measured with
// 20 pods, medians: 50 takes 10.7 MB and 14.5 ms of CPU time for each start of 20 at once,
// 75 takes 11.2 MB and 13 ms, Go's own 100 takes 12.0 MB and 13 ms.
const gcPercent = 75

// repetitions is how long the same signal may come again: timeout(1) sends each to its child and to
// its group.
const repetitions = 50 * time.Millisecond

func main() {
	runtime.MemProfileRate = 0 // no one can ask for a profile, and its table takes a megabyte
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, func() {
		time.Sleep(repetitions)
		stop() // another signal ends the process at once, whatever it hangs in
	})
	err := command.Execute(ctx, acli.App(), os.Args[1:])
	stop()
	command.Say(os.Stderr, err)
	os.Exit(command.ExitCode(err))
}
