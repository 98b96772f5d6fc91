package node

import (
	"log/slog"
	"os"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/checkpoint"
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
			root, all := &checkpoint.Root{Dir: t.TempDir()}, events.Open(events.Config{Node: "n", Log: log})
			if row.before != "" {
				if err := os.WriteFile(root.Path("boot"), []byte(row.before+"\n"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			RecordStart(all, "n", root, log)
			RecordStart(all, "n", root, log)
			var got []string
			all.List("").Each(func(e *v1.Event) bool {
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

// A reboot is unclean if the agent before it had not ended by itself.
func TestAnUncleanBootIsNoted(t *testing.T) {
	now := checkpoint.ReadBoot().ID
	if now == "" {
		t.Skip("this kernel does not tell")
	}
	const other = "00000000-0000-0000-0000-000000000000"
	for _, row := range []struct {
		name, before string
		clean, want  bool
	}{
		{"a first start", "", false, false},
		{"a kill in the same boot", now, false, false},
		{"an orderly reboot", other, true, false},
		{"a power cut", other, false, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			log := slog.New(slog.DiscardHandler)
			root := &checkpoint.Root{Dir: t.TempDir()}
			files := map[string]bool{"boot": row.before != "", checkpoint.CleanEnd: row.clean}
			for name, is := range files {
				if !is {
					continue
				}
				if err := os.WriteFile(root.Path(name), []byte(row.before+"\n"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			RecordStart(events.Open(events.Config{Node: "n", Log: log}), "n", root, log)
			noted, _ := os.ReadFile(root.Path(checkpoint.UncleanBoot))
			if got := strings.TrimSpace(string(noted)) == now; got != row.want || !got && len(noted) > 0 {
				t.Errorf("noted %q", noted)
			}
		})
	}
}

func TestLimitsOfTheMachinesDNSAreTold(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	all := events.Open(events.Config{Node: "n", Log: log})
	n := &podspec.Host{Name: "n"}
	RecordResolvConf(all, n, "/etc/resolv.conf")
	for range podspec.MaxSearches + 1 {
		n.Resolv.Searches = append(n.Resolv.Searches, "example.com")
	}
	RecordResolvConf(all, n, "/etc/resolv.conf")
	count := 0
	all.List("").Each(func(e *v1.Event) bool {
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
