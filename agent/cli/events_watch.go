package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"monopod/agent/cli/client"
)

// lineMax is how long an event may be as JSON, in bytes.
const lineMax = 64 << 10

// watchEvents prints those events, then those that come until ctx ends. It
// ends with an error when the agent does.
func watchEvents(ctx context.Context, w io.Writer, o EventsOptions, k *client.Known, pod string, past []v1.Event) error {
	p := &eventPrinter{w: w, o: o, seen: map[string]int32{}}
	if k.Down() {
		for i := range past {
			if err := p.print(&past[i], o.Now); err != nil {
				return err
			}
		}
		return fmt.Errorf("no monopod answers on %s, so there is nothing to watch: is `monopod run` running?", o.Socket)
	}
	p.table = newEventTable(o, past)
	if o.Output == "" || o.Output == "wide" {
		for i := range past { // all at once, so that the columns fit
			p.seen[past[i].Namespace+"/"+past[i].Name] = past[i].Count
			p.table.addEvent(&past[i], o.Now)
		}
		if err := p.flush(); err != nil {
			return err
		}
	}
	for {
		ended, err := streamEvents(ctx, o.Socket, pod, func(e *v1.Event) error { return p.print(e, time.Now()) })
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		case ended < time.Minute: // no stream ends so soon but with its agent
			return fmt.Errorf("the monopod on %s has ended", o.Socket)
		}
	}
}

// eventPrinter prints one event after the other.
type eventPrinter struct {
	w     io.Writer
	o     EventsOptions
	seen  map[string]int32 // the count of each event as printed last, by namespace/name
	table *eventTable
}

func (p *eventPrinter) print(e *v1.Event, now time.Time) error {
	name := e.Namespace + "/" + e.Name
	if p.seen[name] >= e.Count {
		return nil
	}
	p.seen[name] = e.Count
	switch p.o.Output {
	case "json":
		data, err := json.Marshal(e)
		if err == nil {
			_, err = p.w.Write(append(data, '\n'))
		}
		return err
	case "yaml":
		data, err := yaml.Marshal(e)
		if err == nil {
			_, err = fmt.Fprintf(p.w, "---\n%s", data)
		}
		return err
	}
	if p.table == nil {
		p.table = newEventTable(p.o, []v1.Event{*e})
	}
	p.table.addEvent(e, now)
	return p.flush()
}

// flush prints the lines of the table that are not printed yet.
func (p *eventPrinter) flush() error {
	var out bytes.Buffer
	p.table.Print(&out)
	p.table.Rows = p.table.Rows[:0]
	_, err := p.w.Write(out.Bytes())
	return err
}

// streamEvents calls do for each event of a stream until it ends, and returns
// how long that took.
func streamEvents(ctx context.Context, socket, pod string, do func(*v1.Event) error) (time.Duration, error) {
	began := time.Now()
	transport := &http.Transport{
		DisableKeepAlives:     true,
		ResponseHeaderTimeout: client.AnswerTimeout,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{Timeout: client.AnswerTimeout}).DialContext(ctx, "unix", socket)
		},
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://monopod/events?watch=1&pod="+url.QueryEscape(pod), nil)
	if err != nil {
		return 0, err
	}
	resp, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		return 0, client.Unreachable(socket, client.AnswerTimeout, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, lineMax))
		return 0, fmt.Errorf("watch events on %s: %s", socket, strings.TrimSpace(string(text)))
	}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, lineMax)
	for lines.Scan() {
		var e v1.Event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return 0, fmt.Errorf("watch events on %s: %w", socket, err)
		}
		if err := do(&e); err != nil {
			return 0, err
		}
	}
	return time.Since(began), nil // however it ended, the agent did not say more
}
