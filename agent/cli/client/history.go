package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/print"
	"monopod/agent/status"
)

// History returns what the agent knows of the versions of the named pod, as JSON too. If no agent
// runs the error is an ErrDown.
func History(ctx context.Context, socket, name, namespace string) (*status.History, []byte, error) {
	all, err := Request{Socket: socket}.pods(ctx, "")
	if err != nil {
		return nil, nil, err
	}
	p, err := FindPod(all, name, namespace)
	if err != nil {
		return nil, nil, err
	}
	return historyOf(ctx, socket, p)
}

func historyOf(ctx context.Context, socket string, p *v1.Pod) (*status.History, []byte, error) {
	path := "/history/" + p.Namespace + "/" + p.Name
	code, line, body, err := ask(ctx, sendTimeout, socket, http.MethodGet, path, nil)
	switch {
	case err != nil:
		return nil, nil, err
	case code == http.StatusNotFound && strings.HasPrefix(string(body), "404 "):
		return nil, nil, fmt.Errorf("the agent at %s is of a version that cannot do this", socket)
	case code == http.StatusNotFound || code == http.StatusServiceUnavailable:
		return nil, nil, errors.New(print.OneLine(string(body)))
	case code != http.StatusOK:
		return nil, nil, fmt.Errorf("GET %s from %s: %s: %s", path, socket, line, print.OneLine(string(body)))
	}
	var h status.History
	err = Decode(body, &h, socket, path)
	return &h, body, err
}

// Rollback lets a former version of a pod replace the one that its manifest gives. It does not
// wait until that runs. The query may have "to", the beginning of that version's hash, else it is
// the version that was ready last; and "reason".
func Rollback(ctx context.Context, o Request) error {
	all, err := o.pods(ctx, "")
	if err != nil {
		return err
	}
	p, err := FindPod(all, o.Choice.Names[0], o.Choice.Namespace)
	if err != nil {
		return err
	}
	_, err = post(ctx, sendTimeout, o.Socket, o.path("rollback/"+p.Namespace+"/"+p.Name))
	if err != nil {
		return err
	}
	h, _, err := historyOf(ctx, o.Socket, p)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(o.Out, subjectOf(p)+" "+goesBack(h))
	return err
}

// goesBack returns which version of a pod comes back, or is back already.
func goesBack(h *status.History) string {
	isBack := func(v status.PastVersion) bool { return v.ComesBack }
	k := slices.IndexFunc(h.Versions, isBack)
	if k < 0 {
		k = slices.IndexFunc(h.Versions, func(v status.PastVersion) bool { return v.Running })
	}
	if k < 0 {
		return "goes back"
	}
	v := &h.Versions[k]
	return fmt.Sprintf("goes back to version %s (%s)", print.ShortHash(v.Hash), print.OneLine(strings.Join(v.Images, ", ")))
}
