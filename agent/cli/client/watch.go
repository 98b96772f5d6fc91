package client

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
)

// lineMax is the maximum length of an event as JSON, in bytes.
const lineMax = 64 << 10

// WatchEvents calls do for each event of a stream until it ends, and returns how long that took.
func WatchEvents(ctx context.Context, socket, pod string, do func(*v1.Event) error) (time.Duration, error) {
	began := time.Now()
	transport := &http.Transport{
		DisableKeepAlives:     true,
		ResponseHeaderTimeout: answerTimeout,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{Timeout: answerTimeout}).DialContext(ctx, "unix", socket)
		},
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://monopod/events?watch=1&pod="+url.QueryEscape(pod), nil)
	if err != nil {
		return 0, err
	}
	resp, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		return 0, unreachable(socket, answerTimeout, err)
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
		if err := Decode(lines.Bytes(), &e, socket, "/events"); err != nil {
			return 0, err
		}
		if err := do(&e); err != nil {
			return 0, err
		}
	}
	return time.Since(began), nil // however it ended, the agent sent no more
}
