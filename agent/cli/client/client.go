// Package client requests from the agent what commands need, or reads what the last agent left. A
// request of the owner is a Request; a new verb that only names pods is a verb in owner.go.
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

	"monopod/agent/print"
)

// answerTimeout bounds one request to the agent, which answers from memory.
const answerTimeout = 5 * time.Second

// Get returns the answer of the agent behind the socket for path. Its errors are one sentence for
// the person at the terminal.
func Get(ctx context.Context, socket, path string) ([]byte, error) {
	return GetWithin(ctx, answerTimeout, socket, path)
}

// GetWithin is Get with another timeout.
func GetWithin(ctx context.Context, timeout time.Duration, socket, path string) ([]byte, error) {
	code, status, body, err := ask(ctx, timeout, socket, http.MethodGet, path, nil)
	if err != nil {
		return nil, err
	}
	if code != http.StatusOK {
		return nil, fmt.Errorf("GET %s from %s: %s: %s", path, socket, status, strings.TrimSpace(string(body)))
	}
	return body, nil
}

// ask returns the answer of the agent behind the socket. request: the body; nil: none.
func ask(caller context.Context, timeout time.Duration, socket, method, path string, request []byte) (code int, status string, body []byte, err error) {
	ctx, cancel := context.WithTimeout(caller, timeout)
	defer cancel()
	transport := &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		},
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://monopod"+path, bytes.NewReader(request))
	if err != nil {
		return 0, "", nil, err
	}
	resp, err := (&http.Client{Transport: transport}).Do(req)
	if err == nil {
		defer resp.Body.Close()
		body, err = io.ReadAll(resp.Body)
	}
	switch {
	case err != nil && caller.Err() != nil: // whatever the agent was about to answer
		return 0, "", nil, fmt.Errorf("no answer from %s yet: %w", socket, context.Cause(caller))
	case err != nil:
		return 0, "", nil, unreachable(socket, timeout, err)
	}
	return resp.StatusCode, resp.Status, body, nil
}

// GetJSON decodes the answer of Get into v.
func GetJSON(ctx context.Context, socket, path string, v any) error {
	body, err := Get(ctx, socket, path)
	if err != nil {
		return err
	}
	return Decode(body, v, socket, path)
}

// Decode decodes the agent's answer for path.
func Decode(body []byte, v any, socket, path string) error {
	if err := json.Unmarshal(body, v); err != nil {
		return fmt.Errorf("what %s answers for %s is no answer of a monopod: is it another program's socket? (%s)", socket, path, print.OneLine(err.Error()))
	}
	return nil
}

// unreachable returns why the agent could not be reached.
func unreachable(socket string, timeout time.Duration, err error) error {
	return &FlagError{"socket", whyUnreachable(socket, timeout, err)}
}

func whyUnreachable(socket string, timeout time.Duration, err error) error {
	var errno syscall.Errno
	if u := (*url.Error)(nil); errors.As(err, &u) {
		err = u.Err // without the URL, which is not meant for people
	}
	switch {
	case errors.Is(err, syscall.EACCES) || errors.Is(err, syscall.EPERM):
		return fmt.Errorf("the socket %s is for root only: %w", socket, syscall.EACCES)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("no answer from %s within %s: is the monopod there stuck?", socket, timeout)
	case errors.As(err, &errno):
		return fmt.Errorf("no monopod answers on %s: %s (%w)", socket, WhereToLook(), errno)
	default:
		return fmt.Errorf("the program on %s ended without an answer, or gave none: %w", socket, err)
	}
}

// PostJSON sends a body, and decodes the answer into v.
func PostJSON(ctx context.Context, socket, path string, asked, v any) error {
	request, err := json.Marshal(asked)
	if err != nil {
		return err
	}
	body, err := postWith(ctx, sendTimeout, socket, path, request)
	if err != nil {
		return err
	}
	return Decode(body, v, socket, path)
}

// post sends an empty POST. A refusal is an error with the agent's text.
func post(ctx context.Context, timeout time.Duration, socket, path string) ([]byte, error) {
	return postWith(ctx, timeout, socket, path, nil)
}

func postWith(ctx context.Context, timeout time.Duration, socket, path string, request []byte) ([]byte, error) {
	code, status, body, err := ask(ctx, timeout, socket, http.MethodPost, path, request)
	switch {
	case err != nil:
		return nil, err
	case code == http.StatusMethodNotAllowed || code == http.StatusRequestEntityTooLarge: // as it takes no body
		return nil, fmt.Errorf("the agent at %s is of a version that cannot do this", socket)
	case code == http.StatusNotFound || code == http.StatusConflict || code == http.StatusServiceUnavailable:
		return nil, errors.New(print.OneLine(string(body)))
	case code != http.StatusOK:
		return nil, fmt.Errorf("POST %s to %s: %s: %s", path, socket, status, print.OneLine(string(body)))
	}
	return body, nil
}
