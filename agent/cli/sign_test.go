package cli

import (
	"bytes"
	"crypto/ed25519"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"monopod/manifests/signature"
)

func noErr(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// signs runs sign in a folder, and returns what it says.
func signs(t *testing.T, args ...string) string {
	t.Helper()
	var b bytes.Buffer
	runTable(t, &b, append([]string{"sign"}, args...)...)
	_, said, _ := strings.Cut(b.String(), "\n")
	return said
}

func TestSignMakesAKeyAndSigns(t *testing.T) {
	t.Chdir(t.TempDir())
	one := "kind: List\nmetadata: {annotations: {monopod.serial: '7', monopod.node: edge7}}\nitems: []\n"
	noErr(t, os.WriteFile("one.yaml", []byte(one), 0o644))
	noErr(t, os.WriteFile("two.yaml", []byte("metadata: {annotations: {monopod.serial: '8'}}\n"), 0o644))
	said := signs(t, "--key", "fleet.pem", "--new-key", "one.yaml", "two.yaml")
	file, err := os.ReadFile("fleet.pem")
	noErr(t, err)
	key, err := signature.ParsePrivateKey(file)
	noErr(t, err)
	public := key.Public().(ed25519.PublicKey)
	want := "fleet.pem is written: keep it secret, and away from the web server\n" +
		"one.yaml.sig is written: serial 7, for the node edge7\n" +
		"two.yaml.sig is written: serial 8, for any node\n" +
		"manifestURLPublicKey: " + signature.Text(public) + "\n"
	if said != want {
		t.Errorf("said %q, want %q", said, want)
	}
	if info, _ := os.Stat("fleet.pem"); info.Mode().Perm() != 0o600 {
		t.Errorf("the key has the mode %v", info.Mode())
	}
	line, err := os.ReadFile("one.yaml.sig")
	noErr(t, err)
	noErr(t, signature.Verify(public, []byte(one), line))
	if again := signs(t, "--key", "fleet.pem", "one.yaml"); !strings.HasSuffix(again, want[strings.Index(want, "manifestURL"):]) {
		t.Errorf("said %q with the key that is there", again)
	}
}

func TestSignSaysWhyItCannot(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	signs(t, "--key", "fleet.pem", "--new-key")
	key, err := os.ReadFile("fleet.pem")
	noErr(t, err)
	for name, text := range map[string]string{"open.pem": string(key), "text.pem": "secret\n", "none.yaml": "kind: List\n", "bad.yaml": "kind: [\n"} {
		noErr(t, os.WriteFile(name, []byte(text), 0o600))
	}
	noErr(t, os.Chmod("open.pem", 0o644))
	for args, want := range map[string]string{
		"pods.yaml":                       "monopod: sign what, with which key? As in `monopod sign --key fleet.pem pods.yaml`\n[2]\n",
		"--key fleet.pem":                 "monopod: sign what, with which key?",
		"--key fleet.pem --new-key":       "monopod: key fleet.pem: is there already: leave out --new-key, or name another file\n[1]\n",
		"--key away/x.pem --new-key":      "monopod: key: open away/x.pem: no such file or directory\n[1]\n",
		"--key away.pem none.yaml":        "monopod: key: stat away.pem: no such file or directory: make one with --new-key\n[1]\n",
		"--key open.pem none.yaml":        "monopod: key open.pem: others than its owner can open the file (mode 0644): chmod 600 open.pem\n[1]\n",
		"--key text.pem none.yaml":        "monopod: key text.pem: holds no private key (PEM, PKCS #8): make one with --new-key\n[1]\n",
		"--key fleet.pem away.yaml":       "monopod: open away.yaml: no such file or directory\n[1]\n",
		"--key fleet.pem none.yaml":       "monopod: none.yaml: has no serial number: write the annotation monopod.serial",
		"--key fleet.pem bad.yaml":        "monopod: bad.yaml: line 1: its List cannot be read: ",
		"--key fleet.pem --new none.yaml": "monopod: ",
	} {
		if said := signs(t, strings.Fields(args)...); !strings.HasPrefix(said, want) {
			t.Errorf("sign %s: said %q, want %q", args, said, want)
		}
	}
	if left, _ := filepath.Glob("*.sig"); len(left) > 0 {
		t.Errorf("%v was written", left)
	}
	if now, _ := os.ReadFile("fleet.pem"); !bytes.Equal(now, key) {
		t.Error("the key was replaced")
	}
}
