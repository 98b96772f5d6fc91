package cli

import (
	"bytes"
	"context"
	"net/url"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"monopod/agent/cli/clitest"
	"monopod/agent/cli/command"
	"monopod/agent/print"
	"monopod/agent/server"
	"monopod/agent/status"
)

// backAgent serves the pod web with these versions. asked is for what it was asked.
func backAgent(t *testing.T, refuse error, versions ...status.PastVersion) (socket string, asked *string) {
	t.Helper()
	store, asked := clitest.Store(t, t.TempDir()), new(string)
	p := &v1.Pod{}
	p.Namespace, p.Name, p.Spec.NodeName = "default", "web-n", "n"
	store.SetPod("default/web-n", p)
	return clitest.Serve(t, server.Config{Store: store,
		Requests: []server.Request{server.History(func(_ context.Context, namespace, pod string) (*status.History, error) {
			return &status.History{Pod: namespace + "/" + pod, Versions: versions}, nil
		}), server.OfPod("rollback", func(_ context.Context, pod types.NamespacedName, q url.Values) error {
			*asked = strings.TrimSpace(pod.String() + " " + q.Encode())
			return refuse
		})}}), asked
}

// typed runs a command line, and returns what it says and its exit code.
func typed(t *testing.T, line ...string) (string, int) {
	t.Helper()
	var out, errs bytes.Buffer
	err := execute(t.Context(), strings.NewReader(""), &out, &errs, line...)
	out.Write(errs.Bytes())
	if err != nil && err.Error() != "" {
		out.WriteString("monopod: " + err.Error() + "\n")
	}
	return out.String(), command.ExitCode(err)
}

func someVersions() []status.PastVersion {
	ago := func(d time.Duration) *time.Time { return new(time.Now().Add(-d)) }
	return []status.PastVersion{
		{Hash: "2222222222", File: "/m/web.yaml", Images: []string{"web:2", "proxy:1"}, ReadySince: ago(3*time.Hour + time.Second), LastReady: ago(time.Minute + 30*time.Second), Manifest: true,
			RolledBack: "by request at 2026-05-01 12:00:00 UTC: audit"},
		{Hash: "1111111111", File: "/m/web.yaml", Images: []string{"web:1"}, Digests: map[string]string{"web": "sha256:1"}, ReadySince: ago(48*time.Hour + time.Second), Running: true, Ready: true},
		{Hash: "0000000000", File: "/m/web.yaml", Images: []string{"web:0"}, ReadySince: ago(96*time.Hour + time.Second), LastReady: ago(48*time.Hour + time.Second)},
	}
}

func TestHistoryForAPerson(t *testing.T) {
	socket, _ := backAgent(t, nil, someVersions()...)
	got, code := typed(t, "history", "web", "--socket", socket)
	const want = `HASH       READY SINCE   LAST READY   IMAGES          FILE          IS
22222222   3h            90s          web:2,proxy:1   /m/web.yaml   in the manifest; rolled back: by request at 2026-05-01 12:00:00 UTC: audit
11111111   2d            now          web:1           /m/web.yaml   running
00000000   4d            2d           web:0           /m/web.yaml   -
`
	if got != want || code != 0 {
		t.Errorf("code %d:\n%swant\n%s", code, got, want)
	}
}

// In a narrow terminal all is there, what a version is on a line of its own.
func TestHistoryFitsTheTerminal(t *testing.T) {
	versions := someVersions()
	for k := range versions {
		versions[k].File = "/etc/monopod/manifests/web.yaml"
	}
	for columns, want := range map[int]string{
		80: `HASH     READY SINCE LAST READY IMAGES        FILE
    IS
22222222 3h          90s        web:2,proxy:1 /etc/monopod/manifests/web.yaml
    in the manifest; rolled back: by request at 2026-05-01 12:00:00 UTC: audit
11111111 2d          now        web:1         /etc/monopod/manifests/web.yaml
    running
00000000 4d          2d         web:0         /etc/monopod/manifests/web.yaml
    -
`,
		140: `HASH     READY SINCE LAST READY IMAGES        FILE                            IS
22222222 3h          90s        web:2,proxy:1 /etc/monopod/manifests/web.yaml in the manifest; rolled back: by request at 2026-05-01
                                                                              12:00:00 UTC: audit
11111111 2d          now        web:1         /etc/monopod/manifests/web.yaml running
00000000 4d          2d         web:0         /etc/monopod/manifests/web.yaml -
`,
	} {
		var out bytes.Buffer
		if err := print.History(&out, &status.History{Versions: versions}, print.Format{Now: time.Now(), Columns: columns}); err != nil || out.String() != want {
			t.Errorf("at %d columns: %v\n%swant\n%s", columns, err, out.String(), want)
		}
	}
}

func TestHistoryForAScript(t *testing.T) {
	socket, _ := backAgent(t, nil, status.PastVersion{Hash: "1", File: "/m/web.yaml", Images: []string{"web:1"}, ReadySince: new(time.Unix(0, 0).UTC()), Running: true})
	got, code := typed(t, "history", "web", "-o", "yaml", "--socket", socket)
	const want = `pod: default/web-n
versions:
- file: /m/web.yaml
  hash: "1"
  images:
  - web:1
  readySince: "1970-01-01T00:00:00Z"
  running: true
`
	if got != want || code != 0 {
		t.Errorf("code %d:\n%swant\n%s", code, got, want)
	}
}

func TestAHistoryOfOneVersionSaysSo(t *testing.T) {
	socket, _ := backAgent(t, nil, someVersions()[1])
	got, code := typed(t, "history", "default/web", "--socket", socket)
	const want = `HASH       READY SINCE   LAST READY   IMAGES   FILE          IS
11111111   2d            now          web:1    /m/web.yaml   running
monopod: pod default/web-n has no earlier version that was ready, as far as this agent remembers
`
	if got != want || code != 1 {
		t.Errorf("code %d:\n%swant\n%s", code, got, want)
	}
}

func TestRollbackSaysToWhichVersion(t *testing.T) {
	back := someVersions()
	back[1].Running, back[2].Running = false, true
	back[1].ComesBack = true
	refusal := &status.Refusal{Why: "pod default/web-n is not rolled back: it is held: audit (`monopod release web` ends it)"}
	for _, row := range []struct {
		line     string
		refuse   error
		versions []status.PastVersion
		asked    string
		says     string
		code     int
	}{
		{"rollback web", nil, back, "default/web-n", "pod default/web goes back to version 11111111 (web:1)\n", 0},
		{"rollback web --to 111 --reason audit", nil, someVersions(), "default/web-n reason=audit&to=111", "pod default/web goes back to version 11111111 (web:1)\n", 0},
		{"rollback web", refusal, back, "default/web-n", "monopod: " + refusal.Why + "\n", 1},
		{"rollback", nil, back, "", "monopod: roll back which pod? As in `monopod rollback web`\n", 2},
		{"rollback web 2", nil, back, "", "monopod: one pod is rolled back at a time; --to HASH names a version, as in `monopod rollback web --to 3f2a`\n", 2},
		{"history", nil, back, "", "monopod: history of which pod? As in `monopod history web`\n", 2},
		{"rollback wob", nil, back, "", "monopod: there is no pod \"wob\"; there is default/web\n", 1},
	} {
		socket, asked := backAgent(t, row.refuse, row.versions...)
		got, code := typed(t, append(strings.Fields(row.line), "--socket", socket)...)
		if got != row.says || code != row.code || *asked != row.asked {
			t.Errorf("%s: code %d, asked for %q:\n%swant %d, %q:\n%s", row.line, code, *asked, got, row.code, row.asked, row.says)
		}
	}
}
