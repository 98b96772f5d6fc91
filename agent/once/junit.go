package once

import (
	"cmp"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// junit prints the summary as JUnit XML: a testsuite for each pod, a testcase
// for each container. What ran when the work was done has passed, unless it was
// a job that was to end, or a service that crashes again and again.
func junit(s *Summary) ([]byte, error) {
	var b strings.Builder
	var all counts
	suites := make([]string, len(s.Pods))
	for k := range s.Pods {
		t, text := suite(s, &s.Pods[k])
		suites[k] = text
		all.add(t)
	}
	b.WriteString("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n")
	fmt.Fprintf(&b, "<testsuites name=\"monopod once\" %s time=\"%.3f\">\n", all, s.Seconds)
	for _, text := range suites {
		b.WriteString(text)
	}
	b.WriteString("</testsuites>\n")
	return []byte(b.String()), nil
}

// counts are numbers of testcases.
type counts struct{ tests, failures, errors, skipped int }

func (t *counts) add(u counts) {
	t.tests += u.tests
	t.failures += u.failures
	t.errors += u.errors
	t.skipped += u.skipped
}

func (t counts) String() string {
	return fmt.Sprintf("tests=\"%d\" failures=\"%d\" errors=\"%d\" skipped=\"%d\"", t.tests, t.failures, t.errors, t.skipped)
}

func suite(s *Summary, p *PodSummary) (counts, string) {
	var t counts
	var cases strings.Builder
	for k := range p.Containers {
		c := &p.Containers[k]
		t.tests++
		fmt.Fprintf(&cases, "    <testcase name=\"%s\" classname=\"%s\" time=\"%.3f\">\n", escape(c.Name), escape(p.Namespace+"."+p.Name), c.Seconds)
		element, message := resultOf(s, p, c)
		switch element {
		case "failure":
			t.failures++
		case "error":
			t.errors++
		case "skipped":
			t.skipped++
		}
		if element == "skipped" {
			fmt.Fprintf(&cases, "      <skipped message=\"%s\"/>\n", escape(message))
		} else if element != "" {
			fmt.Fprintf(&cases, "      <%s message=\"%s\" type=\"%s\">%s</%[1]s>\n", element, escape(message), escape(cmp.Or(c.Reason, s.Outcome)), escape(details(c)))
		}
		if c.whole != "" {
			fmt.Fprintf(&cases, "      <system-out>%s</system-out>\n", escape(c.whole))
		}
		cases.WriteString("    </testcase>\n")
	}
	at := ""
	if !p.Started.IsZero() {
		at = fmt.Sprintf(" timestamp=\"%s\"", p.Started.Format(time.RFC3339))
	}
	return t, fmt.Sprintf("  <testsuite name=\"%s\" %s time=\"%.3f\"%s>\n%s  </testsuite>\n", escape(p.Namespace+"/"+p.Name), t, p.Seconds, at, cases.String())
}

// resultOf returns the element for a container that failed, "" for one that did
// not.
func resultOf(s *Summary, p *PodSummary, c *ContainerSummary) (element, message string) {
	switch c.Result {
	case resultFailed:
		return "failure", fmt.Sprintf("exit code %d", *c.ExitCode)
	case resultWaiting:
		return "error", joinWords(c.Reason, c.Message)
	case resultNever:
		if p.Reason != "" {
			return "error", joinWords(p.Reason, p.Message)
		}
		return "skipped", "its turn did not come"
	case resultRunning:
		return stopped(s, p.job && c.Kind != "sidecar")
	}
	return "", ""
}

// stopped returns the element for a container that ran when the work was done. ends: it
// was to end by itself.
func stopped(s *Summary, ends bool) (element, message string) {
	switch {
	case !ends || s.Outcome == endSucceeded || s.Outcome == endReady:
		return "", ""
	case s.Outcome == endFailed: // by another
		return "skipped", "it was stopped before its end: " + s.Message
	}
	return "failure", "it still ran: " + s.Message
}

// details are what a container said of its failure, and the last lines that it wrote.
func details(c *ContainerSummary) string {
	return strings.TrimSpace(c.Message + "\n" + strings.Join(c.Output, "\n"))
}

// escape makes text fit for XML. Characters that XML cannot have, not even
// escaped, such as those that colour terminals, are written as in Go: \x1b.
func escape(text string) string {
	var b strings.Builder
	for len(text) > 0 {
		r, n := utf8.DecodeRuneInString(text)
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, text[0])
		case r == '&':
			b.WriteString("&amp;")
		case r == '<':
			b.WriteString("&lt;")
		case r == '>':
			b.WriteString("&gt;")
		case r == '"':
			b.WriteString("&#34;")
		case r == '\n' || r == '\t':
			b.WriteRune(r)
		case r < 0x20:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r == 0xfffe || r == 0xffff:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
		text = text[n:]
	}
	return b.String()
}
