package support

import (
	"strings"
	"testing"
)

func TestAConfigurationIsShownWithoutItsSecrets(t *testing.T) {
	for text, want := range map[string]string{
		"  password = \"p4ss\"\n  username = \"u\"":        "  password = <elided>\n  username = \"u\"",
		"identitytoken = 'abc'":                            "identitytoken = <elided>",
		"[plugins.\"x\".registry.configs.\"r\".auth]":      "[plugins.\"x\".registry.configs.\"r\".auth]",
		"auth = { username = \"u\", password = \"p4ss\" }": "auth = <elided>",
		`{"type":"x","password":"p4\"ss","mtu":1400}`:      `{"type":"x","password":<elided>,"mtu":1400}`,
		"server = \"https://me:p4ss@registry.example\"":    "server = \"https://<elided>registry.example\"",
		"root = \"/var/lib/containerd\"":                   "root = \"/var/lib/containerd\"",
		"tokens = [\n  \"p4\", # ]\n]\nroot = 1":           "tokens = <elided>\nroot = 1",
		"a:\n- token: |\n    p4\n\n    p4\n  mtu: 1\n":     "a:\n- token: <elided>\n  mtu: 1\n",
		"tokens:\n- p4\n- p4\nmtu: 1":                      "tokens:<elided>\nmtu: 1",
		"token: 'it''s p4' # x":                            "token: <elided> # x",
		"password = \"p4":                                  "password = <elided>",
		"secret = ''":                                      "secret = <elided>",
		"nameserver 192.0.2.1":                             "nameserver 192.0.2.1",
	} {
		got := HideConfig(text)
		if got != want || strings.Contains(got, "p4") {
			t.Errorf("%s becomes\n%s\nwant\n%s", text, got, want)
		}
	}
}

// The values of keys that are named like secrets are hidden in each form that TOML, YAML and JSON have.
func TestSecretsOfAConfigurationAreHiddenInEachFormOfAFile(t *testing.T) {
	for name, text := range map[string]string{
		"hosts.toml header, in containerd's documented form": "[host.\"https://r.example\".header]\n  Authorization = [\"Basic dTpwNHNzdzByZA==\"]\n",
		"a TOML list over lines":                             "tokens = [\n  \"dTpwNHNzdzByZA\"\n]\n",
		"a TOML text of several lines":                       "private_key = \"\"\"\ndTpwNHNzdzByZA\n\"\"\"\n",
		"a YAML block":                                       "user:\n  token: |\n    dTpwNHNzdzByZA\n",
		"a YAML list":                                        "users:\n- token: dTpwNHNzdzByZA\n",
		"a YAML flow mapping":                                "users:\n- user: {token: dTpwNHNzdzByZA}\n",
		"a JSON list":                                        `{"tokens": ["dTpwNHNzdzByZA"]}`,
		"a password with @ in a URL":                         "server = \"https://me:x@dTpwNHNzdzByZA@r.example\"\n",
	} {
		if got := HideConfig(text); strings.Contains(got, "dTpwNHNzdzByZA") {
			t.Errorf("%s: %s", name, got)
		}
	}
}
