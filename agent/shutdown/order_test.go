package shutdown

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/manifests"
)

// pods makes pods of words such as "web:5>db,cache": name, priority, what it starts after.
func pods(words ...string) (all []Pod) {
	for _, word := range words {
		name, after, _ := strings.Cut(word, ">")
		name, priority, _ := strings.Cut(name, ":")
		p := Pod{Key: key(name)}
		fmt.Sscan(priority, &p.Priority)
		for other := range strings.FieldsFuncSeq(after, func(c rune) bool { return c == ',' }) {
			p.After = append(p.After, key(other))
		}
		all = append(all, p)
	}
	return all
}

func key(name string) manifests.Key { return manifests.Key{Namespace: "ns", Name: name} }

// text is groups as in "20s: web, db; 25s: proxy".
func text(all []group) string {
	var out []string
	for _, g := range all {
		var waves []string
		for _, w := range g.waves {
			var names []string
			for _, k := range w {
				names = append(names, k.Name)
			}
			waves = append(waves, strings.Join(names, "+"))
		}
		out = append(out, fmt.Sprintf("%s: %s", g.until, strings.Join(waves, ", ")))
	}
	return strings.Join(out, "; ")
}

func TestPodsStopByPriorityThenInReverseStartOrder(t *testing.T) {
	two := TwoPeriods(25*time.Second, 5*time.Second)
	three := []Period{{1000, 3 * time.Second}, {-10, time.Second}, {0, 2 * time.Second}}
	for _, row := range []struct {
		name    string
		pods    []Pod
		periods []Period
		want    string
	}{
		{"nothing", nil, two, ""},
		{"critical pods last", pods("proxy:2000001000", "web", "low:-7"), two, "20s: low+web; 25s: proxy"},
		{"no empty group, whose time the next has", pods("proxy:2000000000"), two, "25s: proxy"},
		{"nor time after the last", pods("web"), two, "20s: web"},
		{"what starts after others first", pods("db", "web>db,cache", "cache>db", "lone"), two, "20s: lone+web, cache, db"},
		{"a start order over groups does not count", pods("db:5>proxy", "proxy:2000000000>db"), two, "20s: db; 25s: proxy"},
		{"one that is not there", pods("web>gone"), two, "20s: web"},
		{"a circle at once, before what it needs", pods("a>b", "b>a", "web>a"), two, "20s: web, a+b"},
		{"by priority, in any order", pods("a:-50", "b:-10", "c:-1", "d:999", "e:1000", "f:9999"), three, "1s: a+b+c; 3s: d; 6s: e+f"},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := text(groupsOf(row.pods, row.periods)); got != row.want {
				t.Errorf("got %q, want %q", got, row.want)
			}
			slices.Reverse(row.pods)
			if got := text(groupsOf(row.pods, row.periods)); got != row.want {
				t.Errorf("the other way round %q", got)
			}
		})
	}
}

func TestACriticalClassIsACriticalPriority(t *testing.T) {
	for _, row := range []struct {
		class    string
		priority *int32
		want     int32
	}{
		{"", nil, 0}, {"batch", nil, 0}, {"system-cluster-critical", nil, Critical}, {"system-node-critical", nil, Critical + 1000},
		{"system-node-critical", new(int32(7)), 7}, {"", new(int32(-7)), -7},
	} {
		p := &v1.Pod{Spec: v1.PodSpec{PriorityClassName: row.class, Priority: row.priority}}
		if got := PriorityOf(p); got != row.want {
			t.Errorf("%+v: %d", row, got)
		}
	}
}
