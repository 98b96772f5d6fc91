package probe

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// probeOf returns a probe by HTTP with a second's timeout.
func probeOf(get v1.HTTPGetAction) *v1.Probe {
	return &v1.Probe{TimeoutSeconds: 1, ProbeHandler: v1.ProbeHandler{HTTPGet: &get}}
}

// words are beginnings of what an outcome says.
func checkOutcome(t *testing.T, got Outcome, err error, want Result, words string) {
	t.Helper()
	if err != nil || got.Result != want || !strings.Contains(got.Output, words) {
		t.Errorf("result %d, output %q, err %v; want %d, %q", got.Result, got.Output, err, want, words)
	}
}

// site is a web server and the host and port that it is on.
func site(t *testing.T, h http.Handler) (host string, port int) {
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return address(t, s.URL)
}

func address(t *testing.T, of string) (host string, port int) {
	u, err := url.Parse(of)
	if err != nil {
		t.Fatal(err)
	}
	port, _ = strconv.Atoi(u.Port())
	return u.Hostname(), port
}

func TestHTTP(t *testing.T) {
	mux := http.NewServeMux()
	code := func(path string, code int) {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code); fmt.Fprint(w, "it says") })
	}
	code("/", 200)
	code("/304", 304)
	code("/399", 399)
	code("/400", 400)
	code("/500", 500)
	to := func(path, where string) {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, where, http.StatusFound) })
	}
	to("/here", "/")
	to("/nowhere", "/500")
	to("/elsewhere", "http://elsewhere.test/")
	to("/round", "/round")
	mux.HandleFunc("/slow", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	mux.HandleFunc("/query", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.RawQuery != "a=b&c" {
			w.WriteHeader(500)
		}
	})
	mux.HandleFunc("/long", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, strings.Repeat("x", 1<<20)) })
	mux.HandleFunc("/torn", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		fmt.Fprint(w, "only this")
	})
	mux.HandleFunc("/header", func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X", strings.Repeat("x", 1<<20)) })
	host, port := site(t, mux)
	for _, row := range []struct {
		name, path string
		want       Result
		words      string
	}{
		{"200 is success", "/", Success, "it says"},
		{"a path without its slash is one", "", Success, ""},
		{"399 is success that a person should know of", "/399", Warning, "Probe terminated redirects, Response body: it says"},
		{"304 too", "/304", Warning, ""},
		{"400 is failure", "/400", Failure, "HTTP probe failed with statuscode: 400"},
		{"500 is failure", "/500", Failure, "HTTP probe failed with statuscode: 500"},
		{"a redirect on the host is followed", "/here", Success, "it says"},
		{"to where it leads", "/nowhere", Failure, "HTTP probe failed with statuscode: 500"},
		{"one to another host is not", "/elsewhere", Warning, "Probe terminated redirects"},
		{"redirects end after ten", "/round", Failure, "stopped after 10 redirects"},
		{"no answer in time is failure", "/slow", Failure, "Client.Timeout exceeded"},
		{"a query is part of the path", "/query?a=b&c", Success, ""},
		{"a header without end is failure", "/header", Failure, "server response headers exceeded 65536 bytes"},
		{"a long answer is cut", "/long", Success, "xxx"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			got, err := new(Prober).probe(t.Context(), probeOf(v1.HTTPGetAction{Path: row.path, Port: intstr.FromInt(port)}), &Target{Host: host}, nil)
			checkOutcome(t, got, err, row.want, row.words)
			if len(got.Output) > outputLimit+100 {
				t.Errorf("%d bytes of output", len(got.Output))
			}
		})
	}
	t.Run("an answer that breaks off is an error", func(t *testing.T) {
		if _, err := new(Prober).probe(t.Context(), probeOf(v1.HTTPGetAction{Path: "/torn", Port: intstr.FromInt(port)}), &Target{Host: host}, nil); err == nil {
			t.Error("none")
		}
	})
}

func TestHTTPHeaders(t *testing.T) {
	var got *http.Request
	host, port := site(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r }))
	for _, row := range []struct {
		name  string
		given []v1.HTTPHeader
		want  string // "host|user agent|accept|connection|x"
	}{
		{"without any", nil, net.JoinHostPort(host, strconv.Itoa(port)) + "|kube-probe/1.36|*/*|close|"},
		{"all of them", []v1.HTTPHeader{{Name: "host", Value: "a.test"}, {Name: "user-agent", Value: "me"}, {Name: "Accept", Value: "text/html"}, {Name: "x", Value: "1"}, {Name: "X", Value: "2"}},
			"a.test|me|text/html|close|1,2"},
		{"an empty Accept sends none", []v1.HTTPHeader{{Name: "Accept"}, {Name: "Host", Value: "a"}}, "a|kube-probe/1.36||close|"},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, err := new(Prober).probe(t.Context(), probeOf(v1.HTTPGetAction{Path: "/", Port: intstr.FromInt(port), HTTPHeaders: row.given}), &Target{Host: host}, nil)
			if err != nil {
				t.Fatal(err)
			}
			connection := "keep"
			if got.Close {
				connection = "close"
			}
			if is := strings.Join([]string{got.Host, got.UserAgent(), strings.Join(got.Header["Accept"], ","), connection, strings.Join(got.Header["X"], ",")}, "|"); is != row.want {
				t.Errorf("%s, want %s", is, row.want)
			}
		})
	}
}

func TestHTTPSDoesNotLookAtCertificates(t *testing.T) {
	s := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer s.Close()
	_, port := address(t, s.URL)
	get := v1.HTTPGetAction{Scheme: v1.URISchemeHTTPS, Host: "localhost", Path: "/", Port: intstr.FromInt(port)}
	got, err := new(Prober).probe(t.Context(), probeOf(get), &Target{Host: "192.0.2.1"}, nil)
	checkOutcome(t, got, err, Success, "")
}

func TestPorts(t *testing.T) {
	c := &v1.Container{Name: "c", Ports: []v1.ContainerPort{{Name: "web", ContainerPort: 8080}}}
	for _, row := range []struct {
		name string
		port intstr.IntOrString
		want int
		err  string
	}{
		{"a number", intstr.FromInt(80), 80, ""},
		{"a name", intstr.FromString("web"), 8080, ""},
		{"a number as a name", intstr.FromString("81"), 81, ""},
		{"an unknown name", intstr.FromString("x"), 0, `container c has no port "x"`},
		{"too great a number", intstr.FromInt(65536), 0, "invalid port number: 65536"},
	} {
		t.Run(row.name, func(t *testing.T) {
			got, err := portOf(row.port, c)
			if got != row.want || (err == nil) != (row.err == "") || err != nil && err.Error() != row.err {
				t.Errorf("%d, %v", got, err)
			}
		})
	}
}

// unused returns a port of this machine on which nobody listens.
func unused(t *testing.T) int {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

func TestTCP(t *testing.T) {
	_, port := site(t, http.NotFoundHandler())
	tcp := func(host string, port int) (Outcome, error) {
		pr := &v1.Probe{ProbeHandler: v1.ProbeHandler{TCPSocket: &v1.TCPSocketAction{Host: host, Port: intstr.FromInt(port)}}}
		return new(Prober).probe(t.Context(), pr, &Target{Host: "127.0.0.1"}, nil)
	}
	got, err := tcp("", port)
	checkOutcome(t, got, err, Success, "")
	got, err = tcp("", unused(t))
	checkOutcome(t, got, err, Failure, "connection refused")
	got, err = tcp("no-such-host.invalid", port)
	checkOutcome(t, got, err, Failure, "no-such-host.invalid")
}

// hangs dials nowhere until its context ends.
func hangs(ctx context.Context, _, _ string) (net.Conn, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestGRPC(t *testing.T) {
	serve := func(h healthpb.HealthServer) int {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		s := grpc.NewServer()
		if h != nil {
			healthpb.RegisterHealthServer(s, h)
		}
		go s.Serve(l)
		t.Cleanup(s.Stop)
		return l.Addr().(*net.TCPAddr).Port
	}
	h := health.NewServer()
	h.SetServingStatus("sick", healthpb.HealthCheckResponse_NOT_SERVING)
	good, none, stuck := serve(h), serve(nil), serve(stuckHealth{})
	for _, row := range []struct {
		name    string
		port    int
		service string
		dial    func(context.Context, string, string) (net.Conn, error)
		want    Result
		words   string
	}{
		{"who serves is well", good, "", nil, Success, ""},
		{"who does not is not", good, "sick", nil, Failure, `service unhealthy (responded with "NOT_SERVING")`},
		{"a service that it does not know", good, "other", nil, Failure, "error: health rpc probe failed: "},
		{"no health service", none, "", nil, Failure, "error: this server does not implement the grpc health protocol (grpc.health.v1.Health): "},
		{"no answer", stuck, "", nil, Failure, "timeout: health rpc did not complete within 1s"},
		{"nobody listens", unused(t), "", nil, Failure, "timeout: failed to connect service \"127.0.0.1:"},
		{"nobody answers the call", 1, "", hangs, Failure, `timeout: failed to connect service "127.0.0.1:1" within 1s: `},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			pr := &v1.Probe{ProbeHandler: v1.ProbeHandler{GRPC: &v1.GRPCAction{Port: int32(row.port), Service: &row.service}}}
			got, err := (&Prober{Dial: row.dial}).probe(t.Context(), pr, &Target{Host: "127.0.0.1"}, nil)
			checkOutcome(t, got, err, row.want, row.words)
		})
	}
}

// loudHealth says very much: in the answer, in its header or in the message of an error.
type loudHealth struct {
	healthpb.UnimplementedHealthServer
	answer, header, message int
}

func (l loudHealth) Check(ctx context.Context, _ *healthpb.HealthCheckRequest) (*healthpb.HealthCheckResponse, error) {
	text := strings.Repeat("\x01", max(l.header, l.message, l.answer))
	if l.message > 0 {
		return nil, status.Error(codes.Internal, text)
	}
	if l.header > 0 {
		grpc.SetTrailer(ctx, metadata.Pairs("x", strings.ReplaceAll(text, "\x01", "x")))
	}
	a := &healthpb.HealthCheckResponse{Status: healthpb.HealthCheckResponse_SERVING}
	if l.answer > 0 {
		a.ProtoReflect().SetUnknown(protowire.AppendBytes(protowire.AppendTag(nil, 999, protowire.BytesType), []byte(text)))
	}
	return a, nil
}

// A server is the container's: whatever it answers costs little, and a gRPC probe like any other
// says little of it.
func TestAGRPCServerThatSaysVeryMuchIsNotHeardOut(t *testing.T) {
	for name, row := range map[string]struct {
		say   loudHealth
		words string
	}{
		"an answer":         {loudHealth{answer: 5000}, "received message larger than max (5006 vs. 4096)"},
		"a header":          {loudHealth{header: 20 << 10}, "stream terminated by RST_STREAM"},
		"a message":         {loudHealth{message: 1 << 20}, "stream terminated by RST_STREAM"},
		"more than is kept": {loudHealth{message: 5000}, "error: health rpc probe failed: rpc error: code = Internal desc = "},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			s := grpc.NewServer()
			healthpb.RegisterHealthServer(s, row.say)
			go s.Serve(l)
			defer s.Stop()
			pr := &v1.Probe{TimeoutSeconds: 60, ProbeHandler: v1.ProbeHandler{GRPC: &v1.GRPCAction{Port: int32(l.Addr().(*net.TCPAddr).Port)}}}
			got, err := new(Prober).probe(t.Context(), pr, &Target{Host: "127.0.0.1"}, nil)
			checkOutcome(t, got, err, Failure, row.words)
			if len(got.Output) > outputLimit {
				t.Errorf("%d bytes of output", len(got.Output))
			}
		})
	}
}

// What a server or command says is cut for all handlers alike, also where it is an error's text.
func TestAnOutcomeIsCut(t *testing.T) {
	host, port := site(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", "http://"+r.Host+":x/"+strings.Repeat("y", 50<<10))
		w.WriteHeader(http.StatusFound)
	}))
	said := func(context.Context, *Target, []string, time.Duration) (string, int32, error) {
		return strings.Repeat("\u00e9", outputLimit), 1, &CommandError{strings.Repeat("\u00e9", outputLimit)}
	}
	for name, pr := range map[string]*v1.Probe{
		"a redirect": probeOf(v1.HTTPGetAction{Path: "/", Port: intstr.FromInt(port)}),
		"a command":  {ProbeHandler: v1.ProbeHandler{Exec: &v1.ExecAction{Command: []string{"x"}}}},
	} {
		got, err := new(Prober).probe(t.Context(), pr, &Target{Host: host}, said)
		if err != nil || len(got.Output) > outputLimit || len(got.Output) < 1000 || !utf8.ValidString(got.Output) {
			t.Errorf("%s: %d bytes of output, %v", name, len(got.Output), err)
		}
	}
}

// stuckHealth never answers.
type stuckHealth struct {
	healthpb.UnimplementedHealthServer
}

func (stuckHealth) Check(ctx context.Context, _ *healthpb.HealthCheckRequest) (*healthpb.HealthCheckResponse, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestExec(t *testing.T) {
	for _, row := range []struct {
		name   string
		output string
		code   int32
		err    error
		want   Result
		words  string
	}{
		{"0 is success", "fine", 0, nil, Success, "fine"},
		{"another code is failure, in the command's words", "it is broken", 2, nil, Failure, "it is broken"},
		{"or ours, if it has none", "\n", 2, nil, Failure, "command exited with 2"},
		{"no end in time is failure", "", 0, fmt.Errorf("exec: %w", context.DeadlineExceeded), Failure, `command timed out: "a b" timed out after 3s`},
	} {
		t.Run(row.name, func(t *testing.T) {
			pr := &v1.Probe{TimeoutSeconds: 3, ProbeHandler: v1.ProbeHandler{Exec: &v1.ExecAction{Command: []string{"a", "b"}}}}
			got, err := new(Prober).probe(t.Context(), pr, &Target{}, func(_ context.Context, _ *Target, command []string, d time.Duration) (string, int32, error) {
				if strings.Join(command, " ") != "a b" || d != 3*time.Second {
					t.Errorf("command %v with %s", command, d)
				}
				return row.output, row.code, row.err
			})
			checkOutcome(t, got, err, row.want, row.words)
		})
	}
	_, err := command(t.Context(), &Target{}, []string{"a"}, 1, func(context.Context, *Target, []string, time.Duration) (string, int32, error) {
		return "", 0, errors.New("no such container")
	})
	if err == nil {
		t.Error("the runtime's trouble is not the container's")
	}
}
