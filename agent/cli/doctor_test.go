package cli

import (
	"reflect"
	"strings"
	"testing"

	"monopod/agent/cli/clitest"
	"monopod/agent/config"
	"monopod/agent/server"
	"monopod/agent/status"
)

// Beside a running agent its folders are examined, whose names no flag need repeat; a flag wins.
func TestDoctorTakesTheFolderFromTheAgent(t *testing.T) {
	cfg := config.Default()
	cfg.Endpoint = "unix:///nowhere"
	cfg.Socket = clitest.Agent(t, "", status.Manifests{Dir: "/usr/pods", Dirs: []string{"/usr/pods", "/srv/pods"}}, status.Runtime{})
	for given, want := range map[string]string{"": "/usr/pods /srv/pods", "/etc/pods": "/etc/pods"} {
		cfg.Manifests = strings.Fields(given)
		m, err := machine(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		m.Runtime.Close()
		if strings.Join(m.Config.Manifests, " ") != want {
			t.Errorf("with --manifests %q: %s", given, m.Config.Manifests)
		}
	}
}

// Beside a running agent its runtime, folders and endpoint are examined; what is given wins.
func TestDoctorTakesSettingsFromTheAgent(t *testing.T) {
	store := clitest.Store(t, t.TempDir())
	socket := clitest.Serve(t, server.Config{Store: store, Settings: func() map[string]any {
		return map[string]any{"containerRuntimeEndpoint": "unix:///srv/runtime", "root": "/srv/root", "podLogsDir": "/srv/logs", "listen": "", "resolvConf": "/srv/resolv.conf",
			"staticPodURL": "https://boxes.example/box7", "cgroupDriver": "none"}
	}})
	given := config.Default()
	given.Socket = socket
	got := besideAgent(t.Context(), given)
	want := given
	want.ManifestURL, want.CgroupDriver = "https://boxes.example/box7", "none"
	want.Endpoint, want.Root, want.PodLogs, want.Listen, want.ResolvConf = "unix:///srv/runtime", "/srv/root", "/srv/logs", "", "/srv/resolv.conf"
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	given.Endpoint, given.Root = "unix:///other", "/other"
	if got := besideAgent(t.Context(), given); got.Endpoint != "unix:///other" || got.Root != "/other" || got.PodLogs != "/srv/logs" {
		t.Errorf("what is given does not win: %+v", got)
	}
	given.Socket = "/nowhere"
	if got := besideAgent(t.Context(), given); !reflect.DeepEqual(got, given) {
		t.Errorf("without an agent: %+v", got)
	}
}

// Without an agent settings with which none starts are an error, not the screen's last line that all of
// them count.
func TestDoctorTellsSettingsWithWhichNoAgentStarts(t *testing.T) {
	cfg := config.Default()
	cfg.Endpoint, cfg.Socket = "unix:///nowhere", "/nowhere"
	for listen, want := range map[string]string{"0.0.0.0:10255": "listen on 0.0.0.0:10255: others can reach this address", "127.0.0.1:10255": ""} {
		cfg.Listen = listen
		m, err := machine(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		m.Runtime.Close()
		if got := strings.Join(m.Wrong, "; "); (got == "") != (want == "") || !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q, want %q", listen, got, want)
		}
	}
}

// What monopod ps shows of the agent itself is no less wrong with the machine.
func TestDoctorTellsWhatTheAgentReportsOfItself(t *testing.T) {
	store := clitest.Store(t, t.TempDir())
	store.SetProblem("tcp", "the TCP address is not served")
	cfg := config.Default()
	cfg.Endpoint, cfg.Socket = "unix:///nowhere", clitest.Serve(t, server.Config{Store: store})
	m, err := machine(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Runtime.Close()
	if len(m.Reports) != 1 || m.Reports[0] != "the TCP address is not served" {
		t.Errorf("reports %q", m.Reports)
	}
}
