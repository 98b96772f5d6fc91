package managed

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/cri"
)

// Seen is what a look at a runtime of the machine has found.
type Seen struct {
	Path      string // of its socket
	Name      string // and version
	Problem   string // why it runs no pods; "": it does
	NoNetwork string // why it gives pods no network, in its words; "": it does
}

// askWithin is how long a runtime may take to answer.
const askWithin = 5 * time.Second

// Look asks a runtime.
func Look(ctx context.Context, endpoint string) (s Seen) {
	s.Path = strings.TrimPrefix(endpoint, "unix://")
	if _, err := os.Stat(s.Path); err != nil {
		s.Problem = "there is no " + s.Path
		return s
	}
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	c, err := cri.Dial(endpoint)
	if err != nil {
		s.Problem = err.Error()
		return s
	}
	defer c.Close()
	v, err := c.Version(ctx)
	if err != nil {
		s.Problem = problem(s.Path, err)
		return s
	}
	s.Name = v.RuntimeName + " " + v.RuntimeVersion
	st, err := c.Status(ctx)
	if err != nil {
		s.Problem = problem(s.Path, err)
		return s
	}
	s.note(st.Status)
	return s
}

// note records what the runtime says of itself.
func (s *Seen) note(st *rt.RuntimeStatus) {
	for _, c := range st.GetConditions() {
		switch {
		case c.Status:
		case c.Type == rt.RuntimeReady:
			s.Problem = fmt.Sprintf("the runtime at %s is not ready: %s", s.Path, words(c))
		case c.Type == rt.NetworkReady:
			s.NoNetwork = words(c)
		}
	}
}

func words(c *rt.RuntimeCondition) string {
	if c.Message == "" {
		return c.Reason
	}
	return strings.TrimSpace(c.Message)
}

// problem says why a runtime that has a socket does not answer.
func problem(path string, err error) string {
	switch grpcstatus.Code(err) {
	case codes.Unimplemented:
		return "the runtime at " + path + " does not speak CRI, as Docker's"
	case codes.Unavailable:
		return "nothing answers at " + path
	}
	return fmt.Sprintf("the runtime at %s does not answer: %v", path, err)
}

// Choose returns the endpoint of the first runtime that can run the pods; network says that they
// need one. "" with the reason: there is none.
func Choose(seen []Seen, network bool) (endpoint, why string) {
	var reasons []string
	for _, s := range seen {
		switch {
		case s.Problem != "":
			reasons = append(reasons, s.Problem)
		case network && s.NoNetwork != "":
			reasons = append(reasons, fmt.Sprintf("%s at %s has no network for pods (%s)", s.Name, s.Path, s.NoNetwork))
		default:
			return "unix://" + s.Path, s.Name + " is ready at " + s.Path
		}
	}
	return "", strings.Join(reasons, ", ")
}
