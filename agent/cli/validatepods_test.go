package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Of two pods that want one port of the machine the agent starts one.
func TestValidateWarnsOfAHostPortThatTwoPodsWant(t *testing.T) {
	pod := func(name, ports string, spec ...string) string {
		return "apiVersion: v1\nkind: Pod\nmetadata: {name: " + name + "}\nspec:\n  " + strings.Join(append(spec, ""), "\n  ") +
			"containers:\n  - name: c\n    image: i\n    ports: [" + ports + "]\n"
	}
	const mapped = "{containerPort: 80, hostPort: 8080}"
	const said = "of the machine is wanted by default/a-n too (DIR/a.yaml:8): the agent runs only one of the two pods; give one of them another port"
	rows := []struct {
		name, a, b string
		want       string // the line of the second file; "": none
	}{
		{"two ports", pod("a", mapped), pod("b", "{containerPort: 80, hostPort: 8081}"), ""},
		{"one port", pod("a", mapped), pod("b", "{containerPort: 1}, "+mapped), "DIR/b.yaml:8:63: warning: spec.containers[0].ports[1].hostPort: TCP port 8080 " + said},
		{"another protocol", pod("a", mapped), pod("b", "{containerPort: 80, hostPort: 8080, protocol: UDP}"), ""},
		{"one of the addresses", pod("a", mapped), pod("b", "{containerPort: 80, hostPort: 8080, hostIP: 10.0.0.1}"), "DIR/b.yaml:8:43: warning: spec.containers[0].ports[0].hostPort: TCP port 8080 " + said},
		{"two addresses", pod("a", "{containerPort: 80, hostPort: 8080, hostIP: 10.0.0.2}"), pod("b", "{containerPort: 80, hostPort: 8080, hostIP: 10.0.0.1}"), ""},
		{"the machine's network", pod("a", mapped), pod("b", "{containerPort: 8080}", "hostNetwork: true"), "DIR/b.yaml:9:29: warning: spec.containers[0].ports[0].containerPort: TCP port 8080 " + said},
		{"two documents of a file", pod("a", mapped) + "---\n" + pod("b", mapped), pod("c", "{containerPort: 1}"), "DIR/a.yaml:17:43: warning: spec.containers[0].ports[0].hostPort: TCP port 8080 " + said},
		{"a pod that is refused", pod("a", mapped), pod("b", mapped, "hostNetwork: maybe"), ""},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			dir := t.TempDir()
			for name, text := range map[string]string{"a.yaml": r.a, "b.yaml": r.b} {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			var out bytes.Buffer
			runTable(t, &out, "validate", "--node-name", "n", dir)
			text := strings.ReplaceAll(out.String(), dir, "DIR")
			want := ""
			if r.want != "" {
				want = r.want + "\n"
			}
			if strings.Count(text, "TCP port") != strings.Count(want, "TCP port") || !strings.Contains(text, want) {
				t.Errorf("it says\n%swant %s", text, want)
			}
		})
	}
}

func TestValidateSaysWhereTheSecondPodStands(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"a": "a, uid: u-1", "b": "b,\n  uid: u-1", "c": "a"} {
		text = "apiVersion: v1\nkind: Pod\nmetadata: {name: " + text + "}\nspec: {containers: [{name: c, image: i}]}\n"
		if err := os.WriteFile(filepath.Join(dir, name+".yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	runTable(t, &out, "validate", "--node-name", "n", dir)
	text := strings.ReplaceAll(out.String(), dir, "DIR")
	for _, want := range []string{"DIR/b.yaml:4:8: metadata.uid: ", "DIR/c.yaml:3:18: metadata.name: pod default/a-n is in DIR/a.yaml already"} {
		if !strings.Contains(text, want) {
			t.Errorf("it does not say %q:\n%s", want, text)
		}
	}
	if want := "2 problems"; !strings.Contains(text, want) {
		t.Errorf("it does not say %q:\n%s", want, text)
	}
}
