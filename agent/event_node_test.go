package agent

import (
	"log/slog"
	"os"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/checkpoint"
	"monopod/agent/config"
	"monopod/agent/events"
	"monopod/agent/podspec"
)

func TestARebootIsTold(t *testing.T) {
	if checkpoint.ReadBoot().ID == "" {
		t.Skip("this kernel does not tell")
	}
	rows := []struct {
		name, before string
		want         string
	}{
		{"a first start", "", "Starting"},
		{"a start in the same boot", checkpoint.ReadBoot().ID, "Starting"},
		{"a start after a reboot", "00000000-0000-0000-0000-000000000000", "Starting Rebooted"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			log := slog.New(slog.DiscardHandler)
			a := &Agent{cfg: config.Config{NodeName: "n"}, log: log, root: &checkpoint.Root{Dir: t.TempDir()}, events: events.Open(events.Config{Node: "n", Log: log})}
			if row.before != "" {
				if err := os.WriteFile(a.root.Path("boot"), []byte(row.before+"\n"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			a.recordStart()
			a.recordStart()
			var got []string
			a.events.List("").Each(func(e *v1.Event) bool {
				got = append(got, e.Reason)
				if e.Reason == "Starting" && e.Count != 2 {
					t.Errorf("%s is told %d times", e.Reason, e.Count)
				}
				return true
			})
			if len(got) == 2 {
				got[0], got[1] = got[1], got[0] // the second start came last
			}
			if s := strings.Join(got, " "); s != row.want {
				t.Errorf("told %s, want %s", s, row.want)
			}
		})
	}
}

func TestLimitsOfDNSAreTold(t *testing.T) {
	const omitted = "Warning DNSConfigForming: Nameserver limits were exceeded, some nameservers have been omitted, " +
		"the applied nameserver line is: 192.0.2.1 192.0.2.2 192.0.2.3"
	prepare := func(r *rig) {
		r.machine = func(n *podspec.Host) { n.Resolv.Servers = []string{"192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4"} }
	}
	liveWith(t, prepare, func(r *rig) {
		r.want(manifest("web", "img:1"), manifest("own", "img:1", "dnsPolicy: None", "dnsConfig: {nameservers: [192.0.2.1]}"))
		r.tells("web-n", omitted)
		if got := strings.Join(r.happened("own-n"), " "); strings.Contains(got, "DNSConfigForming") {
			t.Errorf("told %s", got)
		}
	})
}

func TestLimitsOfTheMachinesDNSAreTold(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	a := &Agent{cfg: config.Config{ResolvConf: "/etc/resolv.conf"}, events: events.Open(events.Config{Node: "n", Log: log})}
	n := &podspec.Host{Name: "n"}
	a.recordResolvConf(n)
	for range podspec.MaxSearches + 1 {
		n.Resolv.Searches = append(n.Resolv.Searches, "example.com")
	}
	a.recordResolvConf(n)
	count := 0
	a.events.List("").Each(func(e *v1.Event) bool {
		count++
		if e.Reason != "CheckLimitsForResolvConf" || !strings.Contains(e.Message, "pods get the first 32 of 33") {
			t.Errorf("told %s: %s", e.Reason, e.Message)
		}
		return true
	})
	if count != 1 {
		t.Errorf("%d events", count)
	}
}
