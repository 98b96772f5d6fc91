package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"monopod/agent/cli/command"
)

// Settings with which no agent starts are refused before one is started: each on any machine.
func TestValidateRefusesSettingsWithWhichNoAgentStarts(t *testing.T) {
	for _, row := range []struct{ text, want string }{
		{"listen: 0.0.0.0:10255", "listen on 0.0.0.0:10255: others can reach this address: it needs tlsCertFile and tlsPrivateKeyFile, and clientCAFile or tokenFile"},
		{"listen: ':10255'\ntokenFile: /t", "others can reach this address"},
		{"listen: '[::]:10255'\ntlsCertFile: /c\ntlsPrivateKeyFile: /k", "others can reach this address"},
		{"listen: 0.0.0.0:10255\ntlsCertFile: /c\ntlsPrivateKeyFile: /k\ntokenFile: /t", ""},
		{"listen: localhost:10255", ""},
		{"listen: ''\ntlsCertFile: /c", ""},
		{"tlsCertFile: /c", "give both tlsCertFile and tlsPrivateKeyFile, or none"},
		{"manifestURLCertFile: /c", "manifestURLCertFile and manifestURLPrivateKeyFile belong together"},
		{"staticPodURL: http://boxes.example.com/x\nmanifestURLTokenFile: /t", "manifestURLTokenFile: the token would go to boxes.example.com unencrypted"},
		{"managedRuntime: true\ncontainerRuntimeEndpoint: unix:///x.sock", "exclude each other"},
		{"cpuManagerPolicyOptions: {full-pcpus-only: 'true'}", "cpuManagerPolicyOptions mean nothing to cpuManagerPolicy none"},
		{"cpuManagerPolicy: static", "cpuManagerPolicy static: "},
		{"cpuManagerPolicy: static\nsystemReserved: {cpu: 500m}", ""},
		{"staticPodPath: [/m, /m/local]", "/m/local is in /m"},
	} {
		file := filepath.Join(t.TempDir(), "c.yaml")
		if err := os.WriteFile(file, []byte(row.text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		text, code := said(t, t.Context(), nil, "validate", "--config", file)
		if isRefused := code == command.ExitUsage; isRefused != (row.want != "") || !strings.Contains(text, row.want) || isRefused && !strings.Contains(text, file) {
			t.Errorf("%s: code %d, said %s; want %q", row.text, code, text, row.want)
		}
	}
}
