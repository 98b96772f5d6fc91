package agent

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"monopod/agent/config"
	"monopod/agent/node"
)

func TestTextsOfManifestsAreShownUnlessTheyMayHoldASecret(t *testing.T) {
	dir, texts := t.TempDir(), &manifestTexts{}
	for _, row := range []struct{ name, text, why string }{
		{"pod.yaml", "kind: Pod\n", ""},
		{"secret.yaml", "kind: Secret\nstringData: {a: b}\n", "Its text is not shown, as it may hold a Secret: open the file itself."},
		{"both.yaml", "kind: Pod\n---\nkind: Secret\n", "Its text is not shown, as it may hold a Secret: open the file itself."},
		{"gone.yaml", "", "It cannot be read now: open " + dir + "/gone.yaml: no such file or directory."},
		{"pipe.yaml", "", "It cannot be read now: read " + dir + "/pipe.yaml: not a regular file."},
	} {
		path := filepath.Join(dir, row.name)
		switch {
		case row.text != "":
			noErr(t, os.WriteFile(path, []byte(row.text), 0o600))
		case row.name == "pipe.yaml":
			noErr(t, unix.Mkfifo(path, 0o600))
		}
		text, why := texts.read(t.Context(), path)
		if why != row.why || row.why == "" && string(text) != row.text || row.why != "" && text != nil {
			t.Errorf("%s: %q, %q", row.name, text, why)
		}
	}
	if _, why := texts.read(t.Context(), "https://boxes.example.com/box7.yaml"); why != "It is what the URL answered, and no file." {
		t.Errorf("of a URL: %q", why)
	}
}

// The first line of the log has the address, and there is a page.
func TestTheLogBeginsWithTheAddressOfThePage(t *testing.T) {
	cfg := config.Default()
	cfg.Manifests, cfg.NodeName, cfg.Endpoint, cfg.CgroupDriver, cfg.Root, cfg.PodLogs = []string{t.TempDir()}, "n", "unix:///nowhere/runtime", node.DriverNone, t.TempDir(), t.TempDir()
	cfg.Socket, cfg.Listen = t.TempDir()+"/socket", "127.0.0.1:0"
	var said bytes.Buffer
	a, err := New(cfg, nil, Options{Log: slog.New(slog.NewTextHandler(&said, nil))})
	noErr(t, err)
	first, _, _ := strings.Cut(said.String(), "\n")
	address := a.server.Page()
	if !strings.Contains(first, "monopod starts") || !strings.HasSuffix(first, " page="+address) {
		t.Errorf("the log begins with %q, and the page is at %s", first, address)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	defer func() {
		cancel()
		noErr(t, <-ended)
	}()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	noErr(t, err)
	r.Header.Set("Accept", "text/html")
	answer, err := http.DefaultClient.Do(r)
	noErr(t, err)
	defer answer.Body.Close()
	if body, err := io.ReadAll(answer.Body); err != nil || !strings.Contains(string(body), "<h1") {
		t.Errorf("%s %v", body, err)
	}
}
