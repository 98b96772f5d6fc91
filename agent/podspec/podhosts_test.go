package podspec

import (
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
)

// named is a pod in a hosts file: "namespace/name", then its addresses.
func named(key string, ips ...string) NamedPod {
	namespace, name, _ := strings.Cut(key, "/")
	return NamedPod{Namespace: namespace, Name: name, IPs: ips}
}

func TestHostsOfPods(t *testing.T) {
	db, web := named("default/db", "10.1.0.3"), named("default/web", "10.1.0.2")
	for _, row := range []struct {
		name string
		pod  func(*v1.Pod)
		all  []NamedPod
		want string // the lines, "|" between them
	}{
		{"one namespace", nil, []NamedPod{db, web}, "10.1.0.3\tdb db.default|10.1.0.2\tweb web.default"},
		{"another namespace", nil, []NamedPod{named("ns/db", "10.1.0.3"), web}, "10.1.0.3\tdb db.ns|10.1.0.2\tweb web.default"},
		{"one name here and there", nil, []NamedPod{named("a/db", "10.1.0.4"), db, named("z/db", "10.1.0.5")},
			"10.1.0.4\tdb.a|10.1.0.3\tdb db.default|10.1.0.5\tdb.z"},
		{"one name in two others", nil, []NamedPod{named("a/db", "10.1.0.4"), named("z/db", "10.1.0.5")}, "10.1.0.4\tdb.a|10.1.0.5\tdb.z"},
		{"one of here that has no address keeps its name", nil, []NamedPod{named("a/db", "10.1.0.4"), named("default/db")}, "10.1.0.4\tdb.a"},
		{"dual stack", nil, []NamedPod{named("default/db", "10.1.0.3", "fd00::3")}, "10.1.0.3\tdb db.default|fd00::3\tdb db.default"},
		{"no address", nil, []NamedPod{named("default/db"), web}, "10.1.0.2\tweb web.default"},
		{"no address at all", nil, []NamedPod{named("default/db")}, ""},
		{"what is no address", nil, []NamedPod{named("default/db", "", "x", "10.1.0.3\n1.1.1.1 evil", "fe80::1%\n1.1.1.1 evil"), web}, "10.1.0.2\tweb web.default"},
		{"its own hostname", func(p *v1.Pod) { p.Spec.Hostname = "db" }, []NamedPod{db, web}, "10.1.0.3\tdb.default|10.1.0.2\tweb web.default"},
		{"its own name without a suffix", func(p *v1.Pod) { p.Name = "web" }, []NamedPod{db, web}, "10.1.0.3\tdb db.default|10.1.0.2\tweb.default"},
		{"an alias of its own", func(p *v1.Pod) {
			p.Spec.HostAliases = []v1.HostAlias{{IP: "10.9.9.9", Hostnames: []string{"db", "DB.default"}}}
		}, []NamedPod{db, web}, "10.1.0.2\tweb web.default"},
		{"a name that is its own address", nil, []NamedPod{named("default/10.1.0.2", "10.1.0.3")}, "10.1.0.3\t10.1.0.2 10.1.0.2.default"},
		{"a name of every machine", nil, []NamedPod{named("default/localhost", "10.1.0.3")}, "10.1.0.3\tlocalhost.default"},
		{"a name with a dot", nil, []NamedPod{named("default/a.b", "10.1.0.3"), named("b/a", "10.1.0.4")}, "10.1.0.3\ta.b.default|10.1.0.4\ta a.b"},
		{"loopback is not another's", nil, []NamedPod{named("default/host", "127.0.0.1", "::1"), web}, "10.1.0.2\tweb web.default"},
		{"on the host's network", func(p *v1.Pod) { p.Spec.HostNetwork = true },
			[]NamedPod{named("default/host", "127.0.0.1"), db, named("default/me", "10.0.0.1")}, "127.0.0.1\thost host.default|10.1.0.3\tdb db.default|10.0.0.1\tme.default"},
	} {
		t.Run(row.name, func(t *testing.T) {
			n := specNode()
			n.HostsFile = []byte("# the machine's\n127.0.0.1 me # db\n")
			p := specPod(func(p *v1.Pod) {
				if row.pod != nil {
					row.pod(p)
				}
			})
			want := ""
			if row.want != "" {
				want = podsHead + strings.ReplaceAll(row.want, "|", "\n") + "\n" + podsFoot
			}
			if got := string(NamesOfPods(row.all).Section(p, EtcHosts(p, []string{"10.1.0.2"}, n))); got != want {
				t.Errorf("got\n%q\nwant\n%q", got, want)
			}
		})
	}
}

func TestWithHostsOfPods(t *testing.T) {
	const old, section = podsHead + "10.1.0.2\told old.default\n" + podsFoot, podsHead + "10.1.0.3\tdb db.default\n" + podsFoot
	for _, row := range []struct{ name, file, section, want string }{
		{"none yet", "a\n", section, "a\n" + section},
		{"none any more", "a\n" + old, "", "a\n"},
		{"another", "a\n" + old, section, "a\n" + section},
		{"what was appended stays", "a\n" + old + "b\nc", section, "a\n" + section + "b\nc"},
		{"what was put before it stays", "a\nb\n" + old, section, "a\nb\n" + section},
		{"an unfinished line", "a", section, "a\n" + section},
		{"an empty file", "", section, section},
		{"nothing at all", "a", "", "a"},
		{"no end", "a\n" + podsHead + "10.1.0.2\told\n", section, "a\n" + section},
		{"no blank line before it", "a" + old, section, "a\n" + section},
		{"an empty one", "a\n" + podsHead + podsFoot + "b\n", section, "a\n" + section + "b\n"},
		{"none any more, before an unfinished line", "a" + old + "b", "", "a\nb"},
		{"as much behind it as in it", "a" + old + strings.Repeat("b", len(section)), section, "a\n" + section + strings.Repeat("b", len(section))},
		{"the end alone", "a\n" + podsFoot, section, "a\n" + podsFoot + section},
		{"one of another monopod before it", "a\n" + old + "b\n" + old + "c\n", section, "a\n" + old + "b\n" + section + "c\n"},
	} {
		t.Run(row.name, func(t *testing.T) {
			got := string(WithHostsOfPods([]byte(row.file), []byte(row.section)))
			if got != row.want {
				t.Errorf("got\n%q\nwant\n%q", got, row.want)
			}
			if again := string(WithHostsOfPods([]byte(got), []byte(row.section))); again != got && row.name != "none any more" {
				t.Errorf("again\n%q\nwant\n%q", again, got)
			}
		})
	}
}
