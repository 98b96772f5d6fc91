package client

import (
	"errors"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func named(namespace, name, node string, containers ...string) v1.Pod {
	p := v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: v1.PodSpec{NodeName: node}}
	for _, c := range containers {
		p.Spec.Containers = append(p.Spec.Containers, v1.Container{Name: c})
	}
	return p
}

func crowd() []v1.Pod {
	return []v1.Pod{
		named("default", "web-n1", "n1", "nginx", "log"),
		named("default", "db-n1", "n1", "db"),
		named("a", "proxy-n1", "n1", "proxy"),
		named("b", "proxy-n1", "n1", "proxy"),
		named("odd", "x-n1", "n1", "c"),    // manifest: x
		named("odd", "x-n1-n1", "n1", "c"), // manifest: x-n1
		named("web", "nginx-n1", "n1", "c"),
		named("web", "front-n1", "n1", "c"),
	}
}

func TestFindPod(t *testing.T) {
	rows := []struct{ what, name, namespace, found, err string }{
		{"short", "db", "", "default/db-n1", ""},
		{"full", "db-n1", "", "default/db-n1", ""},
		{"with namespace", "default/db", "", "default/db-n1", ""},
		{"with namespace, in full", "default/db-n1", "default", "default/db-n1", ""},
		{"ambiguous", "proxy", "", "", `"proxy" may be any of a/proxy-n1, b/proxy-n1: say which`},
		{"said which", "b/proxy", "", "b/proxy-n1", ""},
		{"said which by flag", "proxy", "a", "a/proxy-n1", ""},
		{"a full name wins over a short one", "x-n1", "", "odd/x-n1", ""},
		{"the other by its full name", "x-n1-n1", "", "odd/x-n1-n1", ""},
		{"unknown", "nothing", "", "", "there is no pod \"nothing\"; `monopod ps` lists them"},
		{"a typing error", "prxy", "", "", `there is no pod "prxy"; there is a/proxy, b/proxy`},
		{"a beginning", "we", "", "", `there is no pod "we"; there is default/web`},
		{"the wrong namespace", "b/web", "", "", `there is no pod "web" in namespace b; there is default/web`},
		{"two namespaces", "b/web", "a", "", `"b/web" is not in namespace a: write the namespace once`},
		{"empty", "", "", "", `"" is no pod's name: write POD or NAMESPACE/POD`},
		{"empty namespace", "/web", "", "", `"/web" is no pod's name: write POD or NAMESPACE/POD`},
		{"too much", "a/b/c", "", "", `"a/b/c" is no pod's name: write POD or NAMESPACE/POD`},
	}
	for _, r := range rows {
		t.Run(r.what, func(t *testing.T) {
			p, err := FindPod(crowd(), r.name, r.namespace)
			if r.err != "" {
				if err == nil || err.Error() != r.err {
					t.Errorf("err  %v\nwant %s", err, r.err)
				}
				return
			}
			if err != nil || p.Namespace+"/"+p.Name != r.found {
				t.Errorf("found %v, %v; want %s", p, err, r.found)
			}
		})
	}
}

func TestOnlyAnUnknownPodMayComeYet(t *testing.T) {
	for name, want := range map[string]bool{"nothing": true, "b/web": true, "proxy": false, "a/b/c": false} {
		if _, err := FindPod(crowd(), name, ""); errors.Is(err, ErrNoPod) != want {
			t.Errorf("%s: %v is ErrNoPod: %v", name, err, !want)
		}
	}
}

func TestFindContainer(t *testing.T) {
	rows := []struct{ what, name, namespace, found, container, err string }{
		{"pod", "web", "", "default/web-n1", "", ""},
		{"container", "web/log", "", "default/web-n1", "log", ""},
		{"namespace and pod", "default/web", "", "default/web-n1", "", ""},
		{"all three", "default/web/log", "", "default/web-n1", "log", ""},
		{"namespace by flag", "web/log", "default", "default/web-n1", "log", ""},
		{"namespace or pod", "web/nginx", "", "", "", `"web/nginx" may be pod web/nginx-n1 or container nginx of pod default/web-n1: write namespace, pod and container`},
		{"a namespace that is a pod's name too", "web/front", "", "web/front-n1", "", ""},
		{"no such container", "web/cache", "", "", "", `pod default/web has no container "cache": it has nginx, log`},
		{"no such container of three", "default/web/cache", "", "", "", `pod default/web has no container "cache": it has nginx, log`},
		{"no such pod of three", "default/wib/log", "", "", "", `there is no pod "wib" in namespace default; there is default/web`},
		{"no such pod", "nothing/log", "", "", "", "there is no pod \"log\" in namespace nothing; `monopod ps` lists them"},
		{"no such pod in the namespace", "wib/log", "default", "", "", `there is no pod "wib" in namespace default; there is default/web`},
		{"ambiguous", "proxy", "", "", "", `"proxy" may be any of a/proxy-n1, b/proxy-n1: say which`},
	}
	for _, r := range rows {
		t.Run(r.what, func(t *testing.T) {
			p, container, err := FindContainer(crowd(), r.name, r.namespace)
			if r.err != "" {
				if err == nil || err.Error() != r.err {
					t.Errorf("err  %v\nwant %s", err, r.err)
				}
				return
			}
			if err != nil || p.Namespace+"/"+p.Name != r.found || container != r.container {
				t.Errorf("found %v %q, %v; want %s %q", p, container, err, r.found, r.container)
			}
		})
	}
}

func TestContainerOf(t *testing.T) {
	p := named("default", "web-n1", "n1", "nginx", "log")
	p.Spec.InitContainers = []v1.Container{{Name: "prepare"}}
	check := func(name, want, failure string) {
		t.Helper()
		got, err := ContainerOf(&p, name)
		if got != want || (err == nil) != (failure == "") || err != nil && err.Error() != failure {
			t.Errorf("ContainerOf(%q) = %q, %v", name, got, err)
		}
	}
	check("", "nginx", "")
	check("log", "log", "")
	check("prepare", "prepare", "")
	check("cache", "", `pod default/web has no container "cache": it has nginx, log, prepare`)
	p.Annotations = map[string]string{DefaultContainer: "log"}
	check("", "log", "")
	check("nginx", "nginx", "")
	p.Annotations[DefaultContainer] = "gone"
	check("", "nginx", "")
}
