package cli

import (
	"bytes"
	"context"
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"monopod/agent/cli/client"
	"monopod/agent/cli/clitest"
	"monopod/agent/print"
	"monopod/agent/server"
	"monopod/agent/status"
)

// imageAgent serves a list of images on a socket.
func imageAgent(t *testing.T, list func(context.Context) (*status.Images, error)) (socket string) {
	t.Helper()
	return clitest.Serve(t, server.Config{Images: list})
}

func someImages() *status.Images {
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	id := func(c string) string { return "sha256:" + strings.Repeat(c, 64) }
	return &status.Images{
		Node:    "edge7",
		Disk:    &status.ImageDisk{Dir: "/var/lib/containerd", Capacity: 64e9, Available: 6.4e9, UsedPercent: 90, High: 85, Low: 80},
		Missing: 3.2e9, MissingSince: ago(time.Hour),
		Images: []status.Image{
			{ID: id("d"), Digests: []string{"reg.io/old@" + id("1")}, Size: 123456789, FirstSeen: ago(90 * 24 * time.Hour), Collect: true, Why: "unused for more than 720h"},
			{ID: id("b"), Names: []string{"reg.io/web:2", "reg.io/web:latest"}, Size: 9960000, FirstSeen: ago(time.Hour), LastUsed: now,
				Users: []string{"default/a-edge7", "default/b-edge7", "default/c-edge7", "kube-system/d-edge7"}, Why: "used by all"},
			{ID: id("a"), Names: []string{"reg.io/pause:3"}, Size: 700, Pinned: true, FirstSeen: ago(time.Hour), Why: "pinned by the runtime"},
			{ID: id("c"), Names: []string{"reg.io/spare:1"}, Size: 1.5e12, FirstSeen: ago(time.Hour), LastUsed: ago(time.Minute),
				Why: "unused; goes as number 1 when the disk is 85 % full (now 90 %)"},
			{ID: "e0e0e0", Size: 999999, Users: []string{"container 0123456789abc"}},
		},
	}
}

func TestImages(t *testing.T) {
	socket := imageAgent(t, func(context.Context) (*status.Images, error) { return someImages(), nil })
	for _, output := range []string{"", "wide", "json", "yaml"} {
		t.Run("as "+output, func(t *testing.T) {
			var out bytes.Buffer
			if err := Images(t.Context(), &out, Options{Source: client.Source{Socket: socket}, Format: print.Format{Output: output, Now: now, Columns: 500}}); err != nil {
				t.Fatal(err)
			}
			clitest.Golden(t, out.String())
		})
	}
}

func TestNoImages(t *testing.T) {
	socket := imageAgent(t, func(context.Context) (*status.Images, error) { return &status.Images{}, nil })
	var out bytes.Buffer
	if err := Images(t.Context(), &out, Options{Source: client.Source{Socket: socket}, Format: print.Format{Columns: 500}}); err != nil {
		t.Fatal(err)
	}
	clitest.Golden(t, out.String())
}

func TestImagesOfARuntimeThatIsDown(t *testing.T) {
	socket := imageAgent(t, func(context.Context) (*status.Images, error) {
		return nil, errors.New("look at images: the runtime is down")
	})
	err := Images(t.Context(), nil, Options{Source: client.Source{Socket: socket}})
	if want := "GET /images from " + socket + ": 503 Service Unavailable: look at images: the runtime is down"; err == nil || err.Error() != want {
		t.Errorf("error %v\nwant  %s", err, want)
	}
}

// Of very many images one request removes some, and the next one others.
func TestPruneAsksUntilAllIsDoneAndSaysWhatIsNot(t *testing.T) {
	rounds := []status.RemovedImages{
		{Images: []status.RemovedImage{{Name: "a:1", Size: 1 << 20}}, Failed: []string{"remove image c:1: it is leased"}, More: true},
		{Images: []status.RemovedImage{{Name: "b:1", Size: 1 << 20}}, Failed: []string{"remove image c:1: it is leased"}},
	}
	socket := clitest.Serve(t, server.Config{Requests: []server.Request{
		server.OfImages("prune", func(context.Context, url.Values) (any, error) {
			now := rounds[0]
			rounds = rounds[1:]
			return now, nil
		})}})
	var out bytes.Buffer
	err := pruneImages(t.Context(), &out, socket, false)
	if err == nil || err.Error() != "remove image c:1: it is leased" {
		t.Errorf("%v", err)
	}
	if got := out.String(); got != "a:1 removed (1.0 MB)\nb:1 removed (1.0 MB)\n" {
		t.Errorf("it prints %q", got)
	}
}
