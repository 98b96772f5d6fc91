package cli

import (
	"encoding/json"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"monopod/agent/cli/command"
	"monopod/agent/status"
)

// agentWith serves pods as an agent does, and returns its socket.
func agentWith(t *testing.T, names ...string) string {
	var list v1.PodList
	for _, name := range names {
		namespace, name, _ := strings.Cut(name, "/")
		list.Items = append(list.Items, v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name + "-n1"},
			Spec: v1.PodSpec{NodeName: "n1", Containers: []v1.Container{{Name: "main", Image: "img:1"}, {Name: "log", Image: "img:2"}}}})
	}
	dir, err := os.MkdirTemp("/tmp", "m")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	l, err := net.Listen("unix", dir+"/s")
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/pods":
			json.NewEncoder(w).Encode(list)
		case "/history/default/web-n1":
			json.NewEncoder(w).Encode(status.History{Versions: []status.PastVersion{
				{Hash: "aaaaaaaa11", Running: true}, {Hash: "ab12345678", Images: []string{"img:1", "img:2"}}, {Hash: "cd12345678"}}})
		}
	})}
	go s.Serve(l)
	t.Cleanup(func() { s.Close() })
	return dir + "/s"
}

func TestComplete(t *testing.T) {
	socket := agentWith(t, "default/web", "default/db", "a/proxy", "b/proxy")
	asked := 0
	at := func(s string) string {
		asked++
		if s == command.DefaultSocket {
			s = socket
		}
		return s
	}
	ask := command.Asking{
		Pods: func(s string) command.Pods { return command.AskPods(t.Context(), at(s)) },
		Versions: func(s, pod, namespace string) []string {
			return command.AskVersions(t.Context(), at(s), pod, namespace)
		},
	}
	for line, want := range map[string]string{
		"re":                      "release restart",
		"wa":                      "wait",
		"__":                      "",
		"--":                      "--help",
		"help run ":               "",
		"help exe":                "exec",
		"nosuch ":                 "",
		"exec ":                   "a/proxy b/proxy db web",
		"exec w":                  "web",
		"exec -it w":              "web",
		"exec web ":               "--",
		"exec web -- ":            "",
		"exec -n a ":              "proxy",
		"exec --namespace=a ":     "proxy",
		"exec --namespace = a ":   "proxy",
		"exec -n ":                "a b default",
		"exec --namespace=":       "--namespace=a --namespace=b --namespace=default",
		"exec --namespace =":      "--namespace=a --namespace=b --namespace=default",
		"exec --namespace = d":    "--namespace=default",
		"exec web -c ":            "log main",
		"attach w":                "web",
		"attach -it web -c l":     "log",
		"port-forward w":          "web",
		"port-forward web ":       "",
		"cp w":                    ":files web:",
		"cp ./x w":                ":files web:",
		"exec web -itc m":         "main",
		"exec --socket /nowhere ": "",
		"exec --ro":               "--root",
		"exec --root ":            ":dirs",
		"exec --socket ":          ":files",
		"restart web":             "web",
		"restart web/":            "web/log web/main",
		"restart default/web/l":   "default/web/log",
		"restart a/":              "a/proxy",
		"restart web d":           "db",
		"fo":                      "forget",
		"forget web ":             "a/proxy b/proxy db web",
		"wait web ":               "a/proxy b/proxy db web",
		"wait ./we":               ":files",
		"wait --for g":            "gone",
		"wait --for cond":         "condition=",
		"wait --for d":            "delete",
		"rollback web --to ":      "ab123456 cd123456",
		"rollback web --to=a":     "--to=ab123456",
		"rollback db --to ":       "",
		"rollback --to ":          "",
		"ps ":                     "a/proxy b/proxy db web",
		"ps -o ":                  "json name wide yaml",
		"run --log-format ":       "json text",
		"run --cgroup-driver c":   "cgroupfs",
		"run --manifests ":        ":dirs",
		"run ":                    "",
		"validate ":               ":files",
		"validate x.yaml ":        ":files",
		"diff -o json x.yaml ":    ":files",
		"completion ":             "bash fish zsh",
		"completion bash ":        "",
		"ps --no":                 "--no-headers",
	} {
		words := strings.Split(line, " ")
		var got []string
		for _, word := range command.Completions(App().Commands, words, ask) {
			word, _, _ = strings.Cut(word, "\t")
			got = append(got, word)
		}
		slices.Sort(got)
		if all := strings.Join(got, " "); all != want {
			t.Errorf("%q: %s, want %s", line, all, want)
		}
	}
	if asked == 0 {
		t.Error("nobody was asked for pods")
	}
}

// A shell completes with the script and this program.
func TestBashCompletes(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash here: its completion is not tried")
	}
	socket := agentWith(t, "default/web", "default/worker", "a/proxy")
	bin := filepath.Join(t.TempDir(), "monopod")
	if out, err := exec.Command("go", "build", "-o", bin, "../..").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	dir := t.TempDir()
	os.Mkdir(dir+"/some dir", 0o755)
	os.WriteFile(dir+"/some.yaml", nil, 0o644)
	const drive = `source <("$1" completion bash); shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _monopod "$1" "${COMP_WORDS[COMP_CWORD]}" ""
printf '%s\n' "${COMPREPLY[@]}"`
	for _, r := range []struct{ words, want string }{
		{"wai", "wait"},
		{"exec|--socket|" + socket + "|w", "web|worker"},
		{"exec|--socket|=|" + socket + "|-c|", ""},
		{"restart|--socket|" + socket + "|a/p", "a/proxy"},
		{"restart|--socket|" + socket + "|web/", "web/log|web/main"},
		{"ps|--output|=|w", "wide"},
		{"ps|--output|=", "json|name|wide|yaml"},
		{"validate|some", "some dir|some.yaml"},
		{"run|--manifests|some", "some dir"},
		{"exec|--socket|/nowhere|", ""},
	} {
		cmd := exec.Command(bash, append([]string{"--norc", "-c", drive, "bash", bin, bin}, strings.Split(r.words, "|")...)...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		lines := strings.Split(strings.TrimRight(string(out), "\n"), "\n")
		slices.Sort(lines)
		if got := strings.Join(lines, "|"); err != nil || got != r.want {
			t.Errorf("%s: %s (%v), want %s", r.words, got, err, r.want)
		}
	}
}

// Names are asked of the agent that the variable tells of.
func TestCompletionAsksTheAgentOfTheVariable(t *testing.T) {
	t.Setenv("MONOPOD_SOCKET", agentWith(t, "default/web"))
	ask := command.Asking{Pods: func(s string) command.Pods { return command.AskPods(t.Context(), s) }}
	if got := command.Completions(App().Commands, []string{"top", "pods", "w"}, ask); len(got) != 1 || !strings.HasPrefix(got[0], "web\t") {
		t.Errorf("%q", got)
	}
	if got := command.Completions(App().Commands, []string{"exec", "web/l"}, ask); len(got) != 1 || !strings.HasPrefix(got[0], "web/log\t") {
		t.Errorf("%q", got)
	}
}
