package cri_test

import (
	"os"
	"strings"
	"testing"

	"monopod/cri"
	"monopod/cri/critest"
)

// The runtime that answers is found, whichever it is and however late it comes.
func TestDialTakesTheFirstThatAnswers(t *testing.T) {
	r := critest.Start(t)
	stale := t.TempDir() + "/stale.sock"
	if err := os.WriteFile(stale, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := cri.Dial("unix:///nowhere/containerd.sock", stale, r.Endpoint())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if e := c.Endpoint(); !strings.HasPrefix(e, "unix:///nowhere/containerd.sock or unix://") {
		t.Errorf("endpoint %q before it is connected", e)
	}
	if _, err := c.Version(t.Context()); err != nil {
		t.Fatal(err)
	}
	if c.Endpoint() != r.Endpoint() {
		t.Errorf("endpoint %q, want %q", c.Endpoint(), r.Endpoint())
	}
}

func TestARuntimeThatIsNowhereIsUnavailableAndEachPlaceIsNamed(t *testing.T) {
	c, err := cri.Dial("unix:///nowhere/a.sock", "/nowhere/b.sock")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, err = c.Version(t.Context())
	if !cri.Unavailable(err) || !strings.Contains(err.Error(), "/nowhere/a.sock") || !strings.Contains(err.Error(), "/nowhere/b.sock") {
		t.Errorf("error %v", err)
	}
}

// What runs is in the runtime that answered: another one, which knows nothing of it, is not asked while
// that one is down, as for its upgrade.
func TestARuntimeThatIsDownIsNotExchangedForAnother(t *testing.T) {
	r, other := critest.Start(t), critest.Start(t)
	other.LikeCRIO()
	c, err := cri.Dial(r.Endpoint(), other.Endpoint())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Version(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.Stop()
	if v, err := c.Version(t.Context()); !cri.Unavailable(err) || strings.Contains(err.Error(), other.Endpoint()) {
		t.Errorf("%s answers, error %v", v.GetRuntimeName(), err)
	}
	r.Resume()
	c.Reconnect(t.Context())
	if _, err := c.Version(t.Context()); err != nil || c.Endpoint() != r.Endpoint() {
		t.Errorf("%s answers, error %v", c.Endpoint(), err)
	}
}
