package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/print"
	"monopod/agent/status"
)

// waitEvery is the interval of Wait's requests. The agent answers from memory.
const waitEvery = 300 * time.Millisecond

// ErrTimeout is the error of Wait and Restart when their time is over.
var ErrTimeout = errors.New("the time is over")

// timeoutError is a sentence about what was still missing.
type timeoutError struct{ text string }

func (e *timeoutError) Error() string        { return e.text }
func (e *timeoutError) Is(target error) bool { return target == ErrTimeout }

// WaitOptions is which pods Wait waits for, and for which outcome.
type WaitOptions struct {
	Socket  string
	Choice  Choice // names may be of pods that do not exist yet
	For     string // see parseOutcome
	Timeout time.Duration
	Out     io.Writer // a line for each pod that has reached the outcome
	Err     io.Writer // what it waits for, if that is not obvious

	// ask returns the agent's pods, and whether it knows all manifests yet; nil: over the socket.
	ask func(context.Context) (pods []v1.Pod, complete bool, err error)
}

// Check rejects impossible options.
func (o WaitOptions) Check() error {
	if _, err := parseOutcome(o.For); err != nil {
		return err
	}
	return o.Choice.Check()
}

// Wait returns nil once all pods of the choice have reached the outcome, which may be one after
// the other. It waits for pods that are not known yet, and for the agent if none answers. Its
// error is ErrTimeout, or why a pod will never reach it.
func Wait(ctx context.Context, o WaitOptions) error {
	if err := o.Check(); err != nil {
		return err
	}
	if o.ask == nil {
		o.ask = o.askAgent
	}
	wanted, _ := parseOutcome(o.For)
	w := &wait{WaitOptions: o, outcome: wanted, met: map[string]bool{}, printed: map[string]bool{}}
	return Until(ctx, o.Timeout, wanted.String(), func(ctx context.Context) ([]string, error) {
		err := w.look(ctx)
		return w.missing, err
	})
}

// Until calls look repeatedly until nothing is missing, there is an error, or the time is over (0:
// never); then its error is ErrTimeout, with what was missing.
func Until(ctx context.Context, timeout time.Duration, outcome string,
	look func(context.Context) (missing []string, err error)) error {
	ctx, cancel := bounded(ctx, timeout)
	defer cancel()
	joined := func(ctx context.Context) (string, error) {
		missing, err := look(ctx)
		return strings.Join(missing, "; "), err
	}
	return until(ctx, joined, func(missing string) string {
		return fmt.Sprintf("not %s within %s: %s", outcome, timeout, missing)
	})
}

// wait is a running Wait.
type wait struct {
	WaitOptions
	outcome outcome
	met     map[string]bool // by name as given, or namespace/name
	absent  map[string]bool // names that no pod had at the last look
	printed map[string]bool
	missing []string // what the last look found missing
}

// look requests the pods once and sets what is left to wait for.
func (w *wait) look(ctx context.Context) error {
	pods, complete, err := w.ask(ctx)
	switch {
	case errors.Is(err, syscall.EACCES):
		return err
	case err != nil && ctx.Err() != nil: // it is over: what was missing before is still missing
		if len(w.missing) == 0 {
			w.missing = []string{err.Error()}
		}
		return nil
	case err != nil:
		w.missing = []string{err.Error()}
		w.print(err.Error())
		return nil
	}
	w.missing = nil
	if len(w.Choice.Plain(pods).Names) == 0 {
		return w.lookAtAll(pods, complete)
	}
	absent := map[string]bool{}
	for _, name := range w.Choice.Plain(pods).Names {
		p, err := FindPod(pods, name, w.Choice.Namespace)
		switch {
		case err == nil:
			if err := w.judge(name, p); err != nil {
				return err
			}
		case !errors.Is(err, ErrNoPod):
			return err
		case w.outcome.name != "gone":
			w.waitFor(name, err.Error())
		case complete && w.absent[name]: // twice, for an agent that has just started
			w.reach(name, name, w.outcome.String())
		default:
			absent[name] = true
			w.waitFor(name, "it may be gone")
		}
	}
	w.absent = absent
	return nil
}

// lookAtAll checks all pods that the choice matches now; there must be one,
// unless the outcome is gone.
func (w *wait) lookAtAll(pods []v1.Pod, complete bool) error {
	all := w.Choice.Matching(pods)
	for i := range all {
		if err := w.judge(all[i].Namespace+"/"+print.ShortName(&all[i]), &all[i]); err != nil {
			return err
		}
	}
	none := len(all) == 0
	switch {
	case !complete && w.outcome.name != "gone" && len(w.missing) == 0 && !none:
		w.missing = []string{"the agent does not report all pods yet"}
	case none && w.outcome.name != "gone":
		w.missing = []string{"no pod matches"}
		w.print("no pod matches yet")
	case none && !(complete && w.absent[""]):
		w.missing = []string{"they may be gone"}
	}
	w.absent = map[string]bool{"": none}
	return nil
}

// judge checks one pod. The error is why it will never reach the outcome.
func (w *wait) judge(name string, p *v1.Pod) error {
	subject := p.Namespace + "/" + print.ShortName(p)
	met, never := w.outcome.of(p)
	switch {
	case w.met[name]:
	case len(w.Choice.Names) == 0 && w.outcome.name == "ready" && succeeded(p): // of all pods, it is done
		w.reach(name, subject, "succeeded")
	case never != "":
		return fmt.Errorf("%s is not %s and will not be: %s", subject, w.outcome, never)
	case met:
		w.reach(name, subject, w.outcome.String())
	default:
		word := print.Summarize(p, time.Now()).Word
		if words := print.PodWords([]v1.Pod{*p}, time.Now()); len(words) > 0 {
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
		w.print(why + "; waiting for it")
	}
}

// reach records that a pod has reached the outcome.
func (w *wait) reach(name, subject, to string) {
	if !w.met[name] {
		w.met[name] = true
		fmt.Fprintf(w.Out, "%s: %s\n", subject, to)
	}
}

func (w *wait) print(text string) {
	if !w.printed[text] {
		w.printed[text] = true
		fmt.Fprintln(w.Err, "monopod: "+text)
	}
}

// askAgent requests the pods from the agent behind the socket. Whether these are all matters unless
// they are named, and to the outcome gone.
func (o *WaitOptions) askAgent(ctx context.Context) (pods []v1.Pod, complete bool, err error) {
	if o.For == "gone" || o.For == "removed" {
		return AllPods(ctx, o.Socket)
	}
	var m status.Manifests
	if len(o.Choice.Names) == 0 {
		err = GetJSON(ctx, o.Socket, "/manifests", &m) // before the list, which has all that was known then
		if err != nil {
			return nil, false, err
		}
	}
	var list v1.PodList
	err = GetJSON(ctx, o.Socket, "/pods", &list)
	return list.Items, isRead(m) && AreAllReported(list.Items, m), err
}
