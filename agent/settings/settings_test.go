package settings

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"monopod/agent/config"
)

func TestFailSwapOn(t *testing.T) {
	for text, want := range map[string]string{"Filename Type\n": "", "Filename Type\n/dev/sda2 partition\n": "the machine has swap"} {
		path := filepath.Join(t.TempDir(), "swaps")
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := checkSwap(path); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestCredentialsInAHeaderAreNotSentUnencrypted(t *testing.T) {
	const refused = "staticPodURLHeader: the Authorization header would go to "
	for _, row := range []struct{ url, header, want string }{
		{"http://example.org/pods", "Authorization", refused + "example.org unencrypted"},
		{"http://example.org/pods", "authorization", refused},
		{"http://example.org/pods", "X-Site", ""},
		{"https://example.org/pods", "Authorization", ""},
		{"http://127.0.0.1:8080/pods", "Authorization", ""},
	} {
		c := config.Default()
		c.NodeName, c.Root, c.ManifestURL, c.ManifestURLHeader = "n", t.TempDir(), row.url, map[string]config.Header{row.header: {"Basic c2VjcmV0"}}
		_, err := Complete(c, false)
		if (err == nil) != (row.want == "") || err != nil && !strings.HasPrefix(err.Error(), row.want) {
			t.Errorf("%s with %s: %v, want %q", row.url, row.header, err, row.want)
		}
		if err != nil && strings.Contains(err.Error(), "c2VjcmV0") {
			t.Errorf("the error tells the secret: %v", err)
		}
	}
}
