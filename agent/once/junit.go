package once

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	v1 "k8s.io/api/core/v1"
)

// The elements of JUnit's XML. Seconds are texts, with three digits.
type (
	junitReport struct {
		XMLName xml.Name `xml:"testsuites"`
		Name    string   `xml:"name,attr"`
		counts
		Seconds string       `xml:"time,attr"`
		Suites  []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name string `xml:"name,attr"`
		counts
		Seconds string      `xml:"time,attr"`
		Began   string      `xml:"timestamp,attr,omitempty"`
		Cases   []junitCase `xml:"testcase"`
	}
	// junitCase has at most one result: one without passed.
	junitCase struct {
		Name    string       `xml:"name,attr"`
		Class   string       `xml:"classname,attr"`
		Seconds string       `xml:"time,attr"`
		Failure *junitResult `xml:"failure"`
		Error   *junitResult `xml:"error"`
		Skipped *junitResult `xml:"skipped"`
		Output  *junitOutput `xml:"system-out"`
	}
	junitResult struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr,omitempty"`
		Text    string `xml:",cdata"`
	}
	junitOutput struct {
		Text string `xml:",cdata"`
	}
	// counts are numbers of testcases.
	counts struct {
		Tests    int `xml:"tests,attr"`
		Failures int `xml:"failures,attr"`
		Errors   int `xml:"errors,attr"`
		Skipped  int `xml:"skipped,attr"`
	}
)

func (t *counts) add(u counts) {
	t.Tests += u.Tests
	t.Failures += u.Failures
	t.Errors += u.Errors
	t.Skipped += u.Skipped
}

// junit prints the summary as JUnit XML: a testsuite for each pod, a testcase for each container.
// What ran when the work was done has passed, unless it was a job that was to end, or a service
// that crashes again and again. Of a run whose manifests or flags are refused the pods are not known:
// it has one testcase, which says why.
func junit(s *Summary) ([]byte, error) {
	r := junitReport{Name: "monopod once", Seconds: seconds(s.Seconds)}
	if len(s.Pods) == 0 {
		r.counts = counts{Tests: 1, Errors: 1}
		r.Suites = append(r.Suites, refusal(s, r))
	}
	for k := range s.Pods {
		one := suite(s, &s.Pods[k])
		r.Suites = append(r.Suites, one)
		r.add(one.counts)
	}
	data, err := xml.MarshalIndent(r, "", "  ")
	return []byte(xml.Header + string(data) + "\n"), err
}

// refusal is the testsuite of a run without pods.
func refusal(s *Summary, r junitReport) junitSuite {
	why := &junitResult{Message: legal(s.Message), Type: s.Outcome, Text: legal(strings.Join(s.Problems, "\n"))}
	one := junitCase{Name: "start", Class: r.Name, Seconds: r.Seconds, Error: why}
	return junitSuite{Name: r.Name, counts: r.counts, Seconds: r.Seconds, Began: s.Started.Format(time.RFC3339), Cases: []junitCase{one}}
}

func seconds(n float64) string { return fmt.Sprintf("%.3f", n) }

func suite(s *Summary, p *PodSummary) junitSuite {
	t := junitSuite{Name: p.Namespace + "/" + p.Name, Seconds: seconds(p.Seconds)}
	if !p.Started.IsZero() {
		t.Began = p.Started.Format(time.RFC3339)
	}
	for k := range p.Containers {
		c := &p.Containers[k]
		one := junitCase{Name: c.Name, Class: p.Namespace + "." + p.Name, Seconds: seconds(c.Seconds)}
		if c.whole != "" {
			one.Output = &junitOutput{legal(c.whole)}
		}
		element, message := resultOf(s, p, c)
		result := &junitResult{Message: legal(message)}
		if element != "skipped" {
			result.Type, result.Text = legal(cmp.Or(reasonOf(p, c), s.Outcome)), legal(details(c))
		}
		switch element {
		case "failure":
			t.Failures, one.Failure = t.Failures+1, result
		case "error":
			t.Errors, one.Error = t.Errors+1, result
		case "skipped":
			t.Skipped, one.Skipped = t.Skipped+1, result
		}
		t.Tests++
		t.Cases = append(t.Cases, one)
	}
	return t
}

// resultOf returns the element for a container that failed, "" for one that did not.
func resultOf(s *Summary, p *PodSummary, c *ContainerSummary) (element, message string) {
	switch c.Result {
	case resultSucceeded:
		if c == p.cut() {
			return "failure", cmp.Or(joinWords(p.Reason, p.Message), "the pod has failed")
		}
	case resultFailed:
		return "failure", fmt.Sprintf("exit code %d", *c.ExitCode)
	case resultWaiting:
		return "error", joinWords(c.Reason, c.Message)
	case resultNever:
		if p.Reason != "" {
			return "error", joinWords(p.Reason, p.Message)
		}
		if p.unseen {
			return "error", s.Message
		}
		return "skipped", "its turn did not come"
	case resultRunning:
		return stopped(s, p.job && c.Kind != "sidecar")
	}
	return "", ""
}

// cut returns the container that a failed pod is reported by if none of its containers has failed, as
// where they ended with 0 when they were stopped at a deadline: the one that ended last. nil: there is
// none, or another one says it.
func (p *PodSummary) cut() (last *ContainerSummary) {
	if p.Phase != v1.PodFailed {
		return nil
	}
	for k := range p.Containers {
		c := &p.Containers[k]
		switch {
		case c.Kind == "sidecar":
		case c.Result != resultSucceeded:
			return nil
		case last == nil || !c.Finished.Before(last.Finished):
			last = c
		}
	}
	return last
}

// reasonOf returns the reason of a container that has not passed.
func reasonOf(p *PodSummary, c *ContainerSummary) string {
	if c.Result == resultSucceeded {
		return p.Reason
	}
	return c.Reason
}

// stopped returns the element for a container that ran when the work was done. ends: it
// was to end by itself.
func stopped(s *Summary, ends bool) (element, message string) {
	switch {
	case !ends || s.work == endSucceeded || s.work == endReady:
		return "", ""
	case s.work == endFailed: // by another
		return "skipped", "it was stopped before its end: " + s.Message
	}
	return "failure", "it still ran: " + s.Message
}

// details returns a container's message about its failure, and the last lines that it wrote.
func details(c *ContainerSummary) string {
	return strings.TrimSpace(c.Message + "\n" + strings.Join(c.Output, "\n"))
}

// legal returns the text in characters that XML can have. Those that it cannot have, even escaped,
// such as those that colour terminals, are written as in Go: \x1b.
func legal(text string) string {
	var b strings.Builder
	for len(text) > 0 {
		r, n := utf8.DecodeRuneInString(text)
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, text[0])
		case r == '\n' || r == '\t' || r >= 0x20 && r != 0xfffe && r != 0xffff:
			b.WriteRune(r)
		case r < 0x20:
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
		text = text[n:]
	}
	return b.String()
}
