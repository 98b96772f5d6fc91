package annotations

import (
	"reflect"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
)

func TestReactions(t *testing.T) {
	for text, want := range map[string]Reaction{
		"restart":                        {Restart: true},
		"signal:HUP":                     {Signal: "SIGHUP"},
		"signal:SIGUSR1":                 {Signal: "SIGUSR1"},
		"exec:nginx -s  reload":          {Command: []string{"nginx", "-s", "reload"}},
		`exec:["sh", "-c", "kill $(a)"]`: {Command: []string{"sh", "-c", "kill $(a)"}},
		`exec: ["reload"]`:               {Command: []string{"reload"}},
	} {
		if r, err := ParseReaction(text); err != nil || !reflect.DeepEqual(r, want) || !r.IsSet() || r.Reloads() == r.Restart {
			t.Errorf("%s: %+v, %v", text, r, err)
		}
	}
	for text, why := range map[string]string{
		"":                 reactionWords,
		"Restart":          reactionWords,
		"reload":           reactionWords,
		"exec:":            reactionWords,
		"exec:[]":          reactionWords,
		`exec:["", "a"]`:   reactionWords,
		`exec:["sh", "-c"`: reactionWords,
		"exec:[1]":         reactionWords,
		`exec:["a", null]`: reactionWords,
		`exec:sh -c "a b"`: "a list where words have spaces or quotes",
		`exec:echo it\'s`:  "a list where words have spaces or quotes",
		"signal:":          "a signal that Linux has",
		"signal:hup":       "a signal that Linux has",
		"signal:1":         "a signal that Linux has",
		"signal:KILL":      "which SIGKILL is not",
		"signal:SIGSTOP":   "which SIGSTOP is not",
	} {
		if r, err := ParseReaction(text); err == nil || !strings.Contains(err.Error(), why) || r.IsSet() {
			t.Errorf("%s: %+v, %v, want %s", text, r, err, why)
		}
	}
}

func TestAContainersReaction(t *testing.T) {
	all := func(pairs ...string) *v1.Pod {
		p := &v1.Pod{}
		p.Annotations = map[string]string{}
		for k := 0; k < len(pairs); k += 2 {
			p.Annotations[pairs[k]] = pairs[k+1]
		}
		return p
	}
	for _, row := range []struct {
		name string
		pod  *v1.Pod
		want string // of the containers a and b
		has  bool
	}{
		{"none", all("x", "y"), "/", false},
		{"the short form", all(RestartOnConfigChange, "true"), "restart/restart", true},
		{"the short form, off", all(RestartOnConfigChange, "false"), "/", true},
		{"of all", all(OnConfigChange, "signal:HUP"), "SIGHUP/SIGHUP", true},
		{"of one", all(OnConfigChange+"/b", "exec:reload all"), "/reload all", true},
		{"of one, and of all others", all(OnConfigChange, "restart", OnConfigChange+"/b", "signal:HUP"), "restart/SIGHUP", true},
		{"of one, beside the short form", all(RestartOnConfigChange, "true", OnConfigChange+"/b", "signal:HUP"), "restart/SIGHUP", true},
	} {
		got := ReactionOf(row.pod, "a").String() + "/" + ReactionOf(row.pod, "b").String()
		if got != row.want || HasReactions(row.pod) != row.has {
			t.Errorf("%s: %s, has %v", row.name, got, HasReactions(row.pod))
		}
	}
}
