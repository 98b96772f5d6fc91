// Package wait waits until manifest files or pods have reached an outcome.
package wait

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/cli/client"
	"monopod/agent/print"
	"monopod/agent/status"
	"monopod/manifests/poduid"
)

// Options are those of client.Wait; the names may be of files as well as of pods.
type Options struct {
	client.WaitOptions

	// ask returns the agent's report; nil: over the socket.
	ask func(context.Context) (*client.Known, error)
}

// fileOutcomes are the outcomes that a file can have.
var fileOutcomes = []string{"ready", "removed", "gone", "accepted", "updated"}

// Check rejects impossible options.
func (o Options) Check() error {
	if err := o.WaitOptions.Check(); err != nil {
		return err
	}
	if files, _ := split(o.Choice.Names); len(files) > 0 && !slices.Contains(fileOutcomes, o.For) {
		return fmt.Errorf("--for %s is not for the file %s: choose ready, removed, accepted or updated, or name its pods",
			o.For, files[0])
	}
	return nil
}

// Run waits as client.Wait does, for files, too: for them, and for "accepted" and "updated", it
// uses the agent's report of manifests.
func Run(ctx context.Context, o Options) error {
	if err := o.Check(); err != nil {
		return err
	}
	if o.Timeout > 0 { // for all of it together
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, o.Timeout, client.ErrTimeout)
		defer cancel()
	}
	files, pods := split(o.Choice.Names)
	byHash := o.For == "accepted" || o.For == "updated"
	if len(files) > 0 || byHash {
		if err := o.newWait(files, pods, byHash).run(ctx); err != nil {
			return err
		}
	}
	if byHash || len(files) > 0 && len(pods) == 0 {
		return nil
	}
	rest := o.WaitOptions
	rest.Choice.Names = pods
	return client.Wait(ctx, rest)
}

// wait is a running Run.
type wait struct {
	Options
	files   []*file
	pods    bool // it includes the pods of the choice
	met     map[string]bool
	printed map[string]bool
	lacks   []string // what the last look found missing
	failed  error    // why something never reaches its outcome
}

func (o Options) newWait(files, pods []string, byHash bool) *wait {
	w := &wait{Options: o, met: map[string]bool{}, printed: map[string]bool{}}
	w.pods = byHash && (len(files) == 0 || len(pods) > 0)
	w.Choice.Names = pods
	for _, name := range files {
		w.files = append(w.files, newFile(name))
	}
	if w.ask == nil {
		w.ask = client.Source{Socket: o.Socket}.All
	}
	return w
}

func (w *wait) run(ctx context.Context) error {
	return client.Until(ctx, w.Timeout, w.For, w.look)
}

// look requests the report once, and returns what is still missing.
func (w *wait) look(ctx context.Context) ([]string, error) {
	known, err := w.ask(ctx)
	switch {
	case errors.Is(err, syscall.EACCES):
		return nil, err
	case err != nil && ctx.Err() != nil: // it is over: what lacked before still lacks
		if len(w.lacks) == 0 {
			w.lacks = []string{err.Error()}
		}
		return w.lacks, nil
	case err != nil:
		w.print(err.Error())
		return []string{err.Error()}, nil
	}
	w.lacks = nil
	for _, f := range w.files {
		w.take(f.given, f.judge(w.For, known))
	}
	if w.pods {
		w.lookAtPods(known)
	}
	return w.lacks, w.failed
}

// lookAtPods judges the pods of the choice, which may be known only by their files.
func (w *wait) lookAtPods(known *client.Known) {
	pods := withStubs(known)
	names := w.Choice.Plain(pods).Names
	all := w.Choice.Matching(pods)
	for i := range all {
		if len(names) == 0 {
			w.take(all[i].Namespace+"/"+print.ShortName(&all[i]), judgePod(w.For, &all[i], known.Manifests))
		}
	}
	if len(names)+len(all) == 0 {
		w.take("", lacking("no pod matches yet"))
	}
	if w.Choice.Selector != "" && !client.AreAllReported(known.Pods, known.Manifests) { // the labels of a stub are not known
		w.lacks = append(w.lacks, "the agent does not report all pods yet")
	}
	for _, name := range names {
		p, err := client.FindPod(pods, name, w.Choice.Namespace)
		switch {
		case err == nil:
			w.take(p.Namespace+"/"+print.ShortName(p), judgePod(w.For, p, known.Manifests))
		case errors.Is(err, client.ErrNoPod):
			w.take(name, verdict{lacks: []string{err.Error()}})
		default:
			w.failed = cmp.Or(w.failed, err)
		}
	}
}

// verdict is the result of one look: nothing lacks, something lacks, or the outcome will never be
// reached.
type verdict struct {
	lacks []string
	never error
}

// take records a verdict; what has reached its outcome once is done.
func (w *wait) take(subject string, v verdict) {
	switch {
	case w.met[subject]:
	case v.never != nil:
		w.failed = cmp.Or(w.failed, v.never)
	case len(v.lacks) > 0:
		w.lacks = append(w.lacks, v.lacks...)
	default:
		w.met[subject] = true
		fmt.Fprintf(w.Out, "%s: %s\n", subject, w.For)
	}
}

func (w *wait) print(text string) {
	if !w.printed[text] {
		w.printed[text] = true
		fmt.Fprintln(w.Err, "monopod: "+text)
	}
}

// judgePod judges a pod by the file that gives it. What the agent says of a file that was changed
// since it read it is of former content.
func judgePod(outcome string, p *v1.Pod, m status.Manifests) verdict {
	subject := p.Namespace + "/" + print.ShortName(p)
	var best *status.Version
	for k := range m.Files {
		for i := range m.Files[k].Versions {
			v := &m.Files[k].Versions[i]
			if v.Pod != p.Namespace+"/"+p.Name {
				continue
			}
			if isChanged(&m.Files[k]) {
				return lacking("the agent has not read " + m.Files[k].Path + " yet")
			}
			if best == nil || status.Worse(v.State, best.State) == best.State {
				best = v
			}
		}
	}
	switch {
	case best == nil:
		return verdict{lacks: []string{subject + " is in no manifest"}}
	case best.State == status.Rejected && (outcome == "accepted" || best.Running == ""):
		return verdict{never: fmt.Errorf("%s is not %s and will not be: its manifest is rejected: %s",
			subject, outcome, print.OneLine(best.Reason))}
	case outcome == "accepted":
		return verdict{}
	case outcome == "updated" && best.Trial == status.TrialFailed:
		return gaveWay(subject, best)
	case best.State == status.Rejected: // what runs is the newest that was accepted
		return judgeVersion(outcome, subject, &status.Version{State: status.Accepted, Hash: best.Running}, p, stableOf(m))
	}
	return judgeVersion(outcome, subject, best, p, stableOf(m))
}

// gaveWay is the verdict on a version that was rolled back, with what it wrote last.
func gaveWay(subject string, v *status.Version) verdict {
	text := fmt.Sprintf("%s is not updated and will not be: %s", subject, print.OneLine(v.Reason))
	if v.Output != "" {
		text += "; its last output:"
	}
	for line := range strings.Lines(v.Output) {
		text += "\n    " + print.OneLine(strings.TrimSuffix(line, "\n"))
	}
	return verdict{never: errors.New(text)}
}

// stableOf returns how long a version must stay ready to count as one that works.
func stableOf(m status.Manifests) time.Duration {
	return cmp.Or(m.UpdateStable.Duration, stable)
}

// stable is the default of the setting updateStable, for an agent that does not report it.
const stable = 10 * time.Second

// judgeVersion judges the reported pod of an accepted version: nil is none. stable is for how long
// an updated version must have been ready.
func judgeVersion(outcome, subject string, v *status.Version, p *v1.Pod, stable time.Duration) verdict {
	lacks := func(why string) verdict { return verdict{lacks: linesOf(subject, v, p, why)} }
	if p == nil {
		return lacks("it is not reported yet")
	}
	runs, halted, updates := poduid.HashOf(p) == v.Hash, client.Halted(p), outcome == "updated"
	switch {
	case halted != "":
		return verdict{never: fmt.Errorf("%s is not %s and will not be: %s", subject, outcome, halted)}
	case !runs && updates:
		return lacks("another version runs")
	case p.DeletionTimestamp != nil:
		return lacks("it is being stopped")
	case updates && v.Trial == status.TrialOn:
		return lacks("it is not certain yet that it works")
	case updates && v.Trial == status.TrialPassed, p.Status.Phase == v1.PodSucceeded:
		return verdict{}
	case print.PodReady(p) && updates && readyFor(p) < stable:
		return lacks(fmt.Sprintf("it has not been ready for %s yet", stable))
	case print.PodReady(p):
		return verdict{}
	case p.Status.Phase == v1.PodFailed && runs && v.State == status.Accepted:
		why := cmp.Or(print.JoinWords(p.Status.Reason, p.Status.Message), strings.Join(print.PodWords([]v1.Pod{*p}, time.Now()), "; "))
		return verdict{never: fmt.Errorf("%s is not %s and will not be: it has failed: %s", subject, outcome, print.OneLine(why))}
	}
	return lacks(print.Summarize(p, time.Now()).Word)
}

// linesOf returns the lines of `monopod ps` for a pod, and why the version does not run if they do
// not contain it; why is used if there is neither.
func linesOf(subject string, v *status.Version, p *v1.Pod, why string) (lines []string) {
	if p != nil {
		lines = print.PodWords([]v1.Pod{*p}, time.Now())
	}
	reason := print.OneLine(v.Reason)
	isListed := slices.ContainsFunc(lines, func(line string) bool { return strings.Contains(line, reason) })
	if reason != "" && !isListed || len(lines) == 0 {
		lines = append(lines, subject+": "+cmp.Or(reason, why))
	}
	return lines
}

// readyFor returns for how long a pod has been ready.
func readyFor(p *v1.Pod) time.Duration {
	for _, c := range p.Status.Conditions {
		if c.Type == v1.PodReady && c.Status == v1.ConditionTrue {
			return time.Since(c.LastTransitionTime.Time)
		}
	}
	return 0
}

// withStubs returns the reported pods, and stubs of the pods that only files name.
func withStubs(known *client.Known) []v1.Pod {
	pods, there, node := slices.Clone(known.Pods), map[string]bool{}, ""
	for i := range pods {
		there[pods[i].Namespace+"/"+pods[i].Name], node = true, pods[i].Spec.NodeName
	}
	for _, f := range known.Manifests.Files {
		for _, v := range f.Versions {
			if there[v.Pod] {
				continue
			}
			there[v.Pod] = true
			p := v1.Pod{}
			p.Namespace, p.Name, _ = strings.Cut(v.Pod, "/")
			p.Spec.NodeName = node
			pods = append(pods, p)
		}
	}
	return pods
}
