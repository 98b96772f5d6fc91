package print

import (
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/status"
	"monopod/manifests/defaults"
)

// PodWords returns the problems of pods, what they wait for, and how containers ended badly. One
// cause is one line.
func PodWords(pods []v1.Pod, now time.Time) []string {
	var words []string
	for i := range pods {
		name := pods[i].Namespace + "/" + ShortName(&pods[i])
		for _, w := range WordsOf(&pods[i], now) {
			words = append(words, name+": "+w.String())
		}
	}
	return words
}

// Word is one line about a pod.
type Word struct {
	Container string // the container that it is about, such as "container web", or several; "": the pod
	Name      string // of that container; "": several, or the pod
	Text      string
	Lasts     string // Text without what changes with time: while this is the same, there is no news
	Reason    string // why that container waits, in the API's words; "": it does not
	Ended     bool   // that container has ended badly
	Hint      string // the command that shows more, while the agent runs; "": none

	cause string // the cause in Text, in the words of the status
}

func (w Word) String() string {
	if w.Container == "" {
		return JoinWords(w.Text, w.Hint)
	}
	return OneLine(JoinWords(w.Container, w.Text, w.Hint))
}

// WordsOf returns the problems of a pod, a word for each cause.
func WordsOf(p *v1.Pod, now time.Time) []Word {
	var words []Word
	pulls := status.PullsOf(p)
	isIncluded := func(text string) bool {
		return slices.ContainsFunc(words, func(w Word) bool { return strings.Contains(w.Text, text) })
	}
	if p.Status.Message != "" {
		words = append(words, withTry(JoinWords(p.Status.Reason, p.Status.Message), pulls, now))
	}
	if s := waitsWhole(p); s != nil {
		words = append(words, waitingWord(s, pulls, now))
	} else {
		words = append(words, containersWords(p, pulls, now)...)
	}
	for _, c := range p.Status.Conditions {
		if hasCause(c) && !isIncluded(c.Message) {
			w := lasting(JoinWords(c.Reason, c.Message))
			w.cause = c.Message
			words = append(words, w)
		}
	}
	for _, line := range status.ProblemsOf(p) {
		words = withProblem(words, line, pulls, now)
	}
	held := p.Annotations[status.AnnHeld]
	switch {
	case held == "" || isIncluded(held):
	case p.Status.Reason == status.ReasonStopped && len(words) > 0:
		words[0].add(held)
	default:
		words = append(words, lasting(held))
	}
	for k := range words {
		words[k].Text = OneLine(words[k].Text)
	}
	return words
}

// add adds more text about the same.
func (w *Word) add(text string) { w.Text, w.Lasts = w.Text+"; "+text, w.Lasts+"; "+text }

// withProblem adds a line of the pod's problems. If a word already has its cause, the line is
// added to that word.
func withProblem(words []Word, line string, pulls []status.Pull, now time.Time) []Word {
	for k := range words {
		w := &words[k]
		if w.cause != "" && strings.Contains(line, w.cause) {
			w.add(strings.Replace(line, w.cause, "the same", 1))
			return words
		}
	}
	return append(words, withTry(line, pulls, now))
}

// lasting returns a word that does not change with time.
func lasting(text string) Word { return Word{Text: text, Lasts: text} }

// waitingWord returns why a container waits, for an image with how long it has been pulled, or
// when it is tried again.
func waitingWord(s *v1.ContainerStatus, pulls []status.Pull, now time.Time) Word {
	w := lasting(JoinWords(s.State.Waiting.Reason, s.State.Waiting.Message))
	if s.State.Waiting.Reason == "NetworkNotReady" && s.State.Waiting.Message != "" { // which includes that, too
		w = lasting(s.State.Waiting.Message)
	}
	w.cause = s.State.Waiting.Message
	for _, pull := range pulls {
		if pull.Container == s.Name {
			w = Word{Text: pull.Text + passes(pull, now), Lasts: pull.Text, cause: pull.Text}
		}
	}
	w.Reason = s.State.Waiting.Reason
	return w
}

// withTry returns a line, with the time of the next try of an image that another version of the
// pod waits for, if the line is about that.
func withTry(line string, pulls []status.Pull, now time.Time) Word {
	w := lasting(line)
	for _, pull := range pulls {
		if pull.Container == "" {
			w.Text = strings.Replace(w.Text, pull.Text, pull.Text+passes(pull, now), 1)
		}
	}
	return w
}

// passes returns what changes with time in the description of a pull.
func passes(pull status.Pull, now time.Time) string {
	if pull.Since.IsZero() {
		return nextTry(pull.Next, now)
	}
	so := now.Sub(pull.Since).Truncate(progressEvery)
	if so <= 0 {
		return ""
	}
	return fmt.Sprintf(", %s so far", so)
}

// progressEvery is the precision of how long an image has been pulled.
const progressEvery = 10 * time.Second

// nextTry returns when something is tried again.
func nextTry(at, now time.Time) string {
	left := at.Sub(now)
	if left <= 0 {
		return "; it is tried again now"
	}
	return "; next try in " + inWords(left)
}

// inWords returns how long something still takes, never too short.
func inWords(left time.Duration) string {
	if left > 2*time.Minute {
		return fmt.Sprintf("%d min", (left+time.Minute-1)/time.Minute)
	}
	return fmt.Sprintf("%d s", (left+time.Second-1)/time.Second)
}

// waitsWhole returns the first of the pod's containers, if all wait for one reason.
func waitsWhole(p *v1.Pod) *v1.ContainerStatus {
	all := slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses)
	if len(all) < 2 {
		return nil
	}
	first := all[0].State.Waiting
	for _, s := range all {
		if w := s.State.Waiting; w == nil || *w != *first || w.Message == "" || s.LastTerminationState.Terminated != nil {
			return nil
		}
	}
	return &all[0]
}

func containersWords(p *v1.Pod, pulls []status.Pull, now time.Time) (words []Word) {
	for _, s := range p.Status.InitContainerStatuses {
		if !waitsAsPod(p, s) && !wasStoppedWith(p, s.Name) {
			words = append(words, containerWords("init container "+s.Name, p, &s, pulls, now)...)
		}
	}
	for _, s := range p.Status.ContainerStatuses {
		if !waitsAsPod(p, s) {
			words = append(words, containerWords("container "+s.Name, p, &s, pulls, now)...)
		}
	}
	return together(words)
}

// together combines the words of containers that wait for the same.
func together(words []Word) (all []Word) {
	for _, w := range words {
		same := slices.IndexFunc(all, func(former Word) bool { return w.cause != "" && former.cause == w.cause && former.Text == w.Text })
		if same < 0 {
			all = append(all, w)
			continue
		}
		all[same].Container, all[same].Name = all[same].Container+", "+w.Container, ""
	}
	return all
}

// waitsAsPod reports whether a container waits for the same as the whole pod.
func waitsAsPod(p *v1.Pod, s v1.ContainerStatus) bool {
	w := s.State.Waiting
	return w != nil && w.Message == "" && w.Reason != "" && w.Reason == p.Status.Reason
}

// wasStoppedWith reports whether a container is a sidecar of a pod that has succeeded: it was stopped then,
// whatever it ended with.
func wasStoppedWith(p *v1.Pod, name string) bool {
	isIt := func(c v1.Container) bool { return c.Name == name && defaults.IsSidecar(&c) }
	return p.Status.Phase == v1.PodSucceeded && slices.ContainsFunc(p.Spec.InitContainers, isIt)
}

// containerWords returns nothing for a container that is well or on its way, or that was told to
// stop.
func containerWords(subject string, p *v1.Pod, s *v1.ContainerStatus, pulls []status.Pull, now time.Time) []Word {
	if t := s.State.Terminated; t != nil && t.ExitCode != 0 && p.DeletionTimestamp == nil {
		text := JoinWords(t.Reason, EndedWith(t), t.Message)
		return []Word{{Container: subject, Name: s.Name, Text: text, Lasts: text, Ended: true}}
	}
	w := s.State.Waiting
	isPulled := func(pull status.Pull) bool { return pull.Container == s.Name }
	if w == nil || !slices.ContainsFunc(pulls, isPulled) && (!Waits(*s) || w.Reason == "ContainerCreating" && w.Message == "") {
		return nil
	}
	word := waitingWord(s, pulls, now)
	if s.LastTerminationState.Terminated != nil && w.Reason == "CrashLoopBackOff" {
		word = crashWord(p, s, now)
	}
	word.Container, word.Name = subject, s.Name
	return []Word{word}
}

// hasCause reports whether a condition is bad and has its cause. One that only names the
// containers concerned has its cause elsewhere.
func hasCause(c v1.PodCondition) bool {
	namesOnly := c.Reason == status.ReasonNotReady || c.Reason == status.ReasonNotInitialized
	return c.Status != v1.ConditionTrue && c.Message != "" && !namesOnly
}
