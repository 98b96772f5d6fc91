package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"
	v1 "k8s.io/api/core/v1"

	"monopod/agent/cli/client"
	"monopod/agent/cli/print"
	"monopod/agent/status"
)

// waitEvery is how often Wait asks. The agent answers from memory.
const waitEvery = 300 * time.Millisecond

// ErrTimeout is what Wait and Restart end with when their time is over.
var ErrTimeout = errors.New("the time is over")

// timeoutError is a sentence about what was still missing.
type timeoutError struct{ text string }

func (e *timeoutError) Error() string        { return e.text }
func (e *timeoutError) Is(target error) bool { return target == ErrTimeout }

// WaitOptions says which pods Wait waits for, and for which outcome.
type WaitOptions struct {
	Socket  string
	Choice  client.Choice // names may be of pods that are still to come
	For     string        // see parseOutcome
	Timeout time.Duration
	Out     io.Writer // a line for each pod that has come to it
	Err     io.Writer // what it waits for, where that is not plain

	// ask returns the agent's pods, and whether it knows all manifests yet; nil: over the socket.
	ask func(context.Context) (pods []v1.Pod, complete bool, err error)
}

// Check refuses options that cannot be meant.
func (o WaitOptions) Check() error {
	if _, err := parseOutcome(o.For); err != nil {
		return err
	}
	return o.Choice.Check()
}

// Wait returns nil once all pods of the choice have come to the outcome, which
// may be one after the other. It waits for pods that are not known yet, and for
// the agent where none answers. Its error is ErrTimeout, or says why a pod will
// never come to it.
func Wait(ctx context.Context, o WaitOptions) error {
	if err := o.Check(); err != nil {
		return err
	}
	if o.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, o.Timeout, ErrTimeout)
		defer cancel()
	}
	if o.ask == nil {
		o.ask = o.askAgent
	}
	wanted, _ := parseOutcome(o.For)
	w := &wait{WaitOptions: o, outcome: wanted, met: map[string]bool{}, said: map[string]bool{}}
	tick := time.NewTicker(waitEvery)
	defer tick.Stop()
	for {
		done, err := w.look(ctx)
		if done || err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			if errors.Is(context.Cause(ctx), ErrTimeout) {
				return &timeoutError{fmt.Sprintf("not %s within %s: %s", w.outcome, o.Timeout, strings.Join(w.missing, "; "))}
			}
			return context.Cause(ctx)
		}
	}
}

// wait is a Wait under way.
type wait struct {
	WaitOptions
	outcome outcome
	met     map[string]bool // by name as it was given, or namespace/name
	absent  map[string]bool // names that no pod had when it was looked at last
	said    map[string]bool
	missing []string // what was waited for when it was looked at last
}

// look asks once and reports whether there is nothing left to wait for.
func (w *wait) look(ctx context.Context) (done bool, err error) {
	pods, complete, err := w.ask(ctx)
	switch {
	case errors.Is(err, syscall.EACCES):
		return false, err
	case err != nil && ctx.Err() != nil && len(w.missing) > 0:
		return false, nil
	case err != nil:
		w.missing = []string{err.Error()}
		w.say(err.Error())
		return false, nil
	}
	w.missing = nil
	if len(w.Choice.Names) == 0 {
		return w.lookAtAll(pods, complete)
	}
	absent := map[string]bool{}
	for _, name := range w.Choice.Names {
		p, err := client.FindPod(pods, name, w.Choice.Namespace)
		switch {
		case err == nil:
			if err := w.judge(name, p); err != nil {
				return false, err
			}
		case !errors.Is(err, client.ErrNoPod):
			return false, err
		case w.outcome.name != "gone":
			w.waitFor(name, err.Error())
		case complete && w.absent[name]: // twice, for an agent that has just started
			w.come(name, name)
		default:
			absent[name] = true
			w.waitFor(name, "it may be gone")
		}
	}
	w.absent = absent
	return len(w.missing) == 0, nil
}

// lookAtAll checks all pods that the choice matches now; there must be one,
// unless the outcome is gone.
func (w *wait) lookAtAll(pods []v1.Pod, complete bool) (done bool, err error) {
	all := w.Choice.Matching(pods)
	for i := range all {
		if err := w.judge(all[i].Namespace+"/"+print.ShortName(&all[i]), &all[i]); err != nil {
			return false, err
		}
	}
	none := len(all) == 0
	switch {
	case none && w.outcome.name != "gone":
		w.missing = []string{"no pod matches"}
		w.say("no pod matches yet")
	case none && !(complete && w.absent[""]):
		w.missing = []string{"they may be gone"}
	}
	w.absent = map[string]bool{"": none}
	return len(w.missing) == 0, nil
}

// judge looks at one pod. The error says why it will never come to the outcome.
func (w *wait) judge(name string, p *v1.Pod) error {
	subject := p.Namespace + "/" + print.ShortName(p)
	met, never := w.outcome.of(p)
	switch {
	case w.met[name]:
	case never != "":
		return fmt.Errorf("%s is not %s and will not be: %s", subject, w.outcome, never)
	case met:
		w.come(name, subject)
	default:
		word := print.Summarize(p, time.Now()).Word
		if words := print.PodWords([]v1.Pod{*p}); len(words) > 0 {
			w.missing = append(w.missing, strings.Join(words, "; "))
		} else {
			w.missing = append(w.missing, subject+": "+word)
		}
	}
	return nil
}

// waitFor adds what is missing, and prints it once.
func (w *wait) waitFor(name, why string) {
	if w.met[name] {
		return
	}
	w.missing = append(w.missing, why)
	if w.outcome.name != "gone" {
		w.say(why + "; waiting for it")
	}
}

// come records that a pod has reached the outcome.
func (w *wait) come(name, subject string) {
	if !w.met[name] {
		w.met[name] = true
		fmt.Fprintf(w.Out, "%s: %s\n", subject, w.outcome)
	}
}

func (w *wait) say(text string) {
	if !w.said[text] {
		w.said[text] = true
		fmt.Fprintln(w.Err, "monopod: "+text)
	}
}

// askAgent asks the agent behind the socket. Only the outcome gone needs the
// agent to know all manifests.
func (o *WaitOptions) askAgent(ctx context.Context) (pods []v1.Pod, complete bool, err error) {
	if o.For == "gone" {
		var m status.Manifests
		if err := client.GetJSON(ctx, o.Socket, "/manifests", &m); err != nil {
			return nil, false, err
		}
		complete = m.Dir != "" || slices.ContainsFunc(m.Files, func(f status.File) bool { return f.Path != "" })
	}
	var list v1.PodList
	err = client.GetJSON(ctx, o.Socket, "/pods", &list)
	return list.Items, complete, err
}

func waitCommand() *command {
	var o WaitOptions
	var all bool
	return &command{
		name: "wait", args: "POD ... | --all | -l LABELS", usage: "wait until pods are ready, or what else they are to come to",
		about: `
What can be waited for: ready, running, succeeded, failed, completed (one or the other),
gone, and condition=TYPE[=STATUS], such as condition=Initialized. A pod that is not known
is waited for, too, and so is an agent that does not run.

Exit codes: 0: all pods have come to it; 1: one of them never will, as a pod that has
failed will not be ready; 124: the time was over.`,
		flags: func(f *pflag.FlagSet) {
			f.StringVar(&o.For, "for", "ready", "the `OUTCOME` to wait for")
			f.DurationVar(&o.Timeout, "timeout", 0, "the longest `TIME` to wait, such as 90s; 0: no limit")
			f.BoolVar(&all, "all", false, "wait for all pods")
			namespaceFlag(f, &o.Choice.Namespace)
			selectorFlag(f, &o.Choice.Selector)
			socketFlag(f, &o.Socket)
		},
		run: func(ctx context.Context, c *Call) error {
			o.Choice.Names, o.Out, o.Err = c.args, c.Out, c.Err
			switch {
			case len(c.args) == 0 && !all && o.Choice.Selector == "":
				return exit(exitUsage, "wait for which pods? Name them, or give --all or -l LABELS")
			case len(c.args) > 0 && all:
				return exit(exitUsage, "name pods or give --all, not both")
			case o.Timeout < 0:
				return exit(exitUsage, "--timeout %s: it is less than no time", o.Timeout)
			}
			if err := o.Check(); err != nil {
				return exit(exitUsage, "%v", err)
			}
			return waited(ctx, Wait(ctx, o))
		},
	}
}

func restartCommand() *command {
	var o RestartOptions
	return &command{
		name: "restart", args: "POD[/CONTAINER] ...", usage: "restart a container, or a whole pod",
		about: `
A container is stopped, with its preStop hook and its grace, and started again at once, even
if it waits after crashes; these are forgotten. A pod without a container's name is replaced
as a whole, with a new sandbox and its init containers run again; its uid and its volumes
stay. A pod that has ended is not run again.

It is waited until all of it runs again; it need not be ready. From the moment on at which
the agent has it written down it happens, whatever becomes of the agent.`,
		flags: func(f *pflag.FlagSet) {
			f.BoolVar(&o.NoWait, "no-wait", false, "return as soon as it is sure to happen")
			f.DurationVar(&o.Timeout, "timeout", 0, "the longest `TIME` to wait for all of it, such as 90s; 0: no limit. The exit code is 124 then")
			namespaceFlag(f, &o.Namespace)
			socketFlag(f, &o.Socket)
		},
		run: func(ctx context.Context, c *Call) error {
			switch {
			case len(c.args) == 0:
				return exit(exitUsage, "restart what? As in `monopod restart web` or `monopod restart web/nginx`")
			case o.Timeout < 0:
				return exit(exitUsage, "--timeout %s: it is less than no time", o.Timeout)
			}
			o.Names, o.Out = c.args, c.Out
			return waited(ctx, Restart(ctx, o))
		},
	}
}

// waited gives the end of a wait that came to nothing its exit code.
func waited(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, ErrTimeout):
		return exit(exitLate, "%v", err)
	case err != nil && ctx.Err() != nil:
		return exit(exitInterrupted, "")
	}
	return err
}
