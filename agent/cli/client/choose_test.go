package client

import (
	"slices"
	"testing"

	"monopod/agent/cli/clitest"
)

func TestChoice(t *testing.T) {
	all := crowd()
	all[0].Labels = map[string]string{"app": "web", "tier": "front"}
	all[1].Labels = map[string]string{"app": "db"}
	all[2].Labels = map[string]string{"app": "web"}
	rows := []struct {
		what   string
		choice Choice
		want   []string
		err    string
	}{
		{"all of a namespace", Choice{Namespace: "odd"}, []string{"odd/x-n1", "odd/x-n1-n1"}, ""},
		{"by label", Choice{Selector: "app=web"}, []string{"default/web-n1", "a/proxy-n1"}, ""},
		{"by labels", Choice{Selector: "app in (web,db),!tier"}, []string{"default/db-n1", "a/proxy-n1"}, ""},
		{"by label and namespace", Choice{Selector: "app=web", Namespace: "a"}, []string{"a/proxy-n1"}, ""},
		{"none has it", Choice{Selector: "app=mail"}, nil, ""},
		{"by names, twice", Choice{Names: []string{"b/proxy", "web", "web-n1"}}, []string{"default/web-n1", "b/proxy-n1"}, ""},
		{"an unknown name", Choice{Names: []string{"web", "prxy"}}, nil, `there is no pod "prxy"; there is a/proxy, b/proxy`},
		{"not a selector", Choice{Selector: "a=b=c"}, nil, `-l: "a=b=c" is no selector such as app=web,tier!=db`},
		{"both", Choice{Names: []string{"web"}, Selector: "a=b"}, nil, `name pods or select them by labels, not both: "web" and -l a=b`},
	}
	for _, r := range rows {
		t.Run(r.what, func(t *testing.T) {
			pods, err := r.choice.Of(all)
			var got []string
			for _, p := range pods {
				got = append(got, p.Namespace+"/"+p.Name)
			}
			if text := clitest.Text(err); text != r.err || !slices.Equal(got, r.want) {
				t.Errorf("chosen %v, err %s\nwant   %v, err %s", got, text, r.want, r.err)
			}
		})
	}
	if pods, _ := (Choice{}).Of(all); len(pods) != len(all) {
		t.Errorf("no choice: %d of %d", len(pods), len(all))
	}
}
