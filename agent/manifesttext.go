package agent

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"monopod/manifests"
	"monopod/manifests/decode"
	"monopod/manifests/patient"
)

// manifestTexts reads the texts of manifests for people. Any goroutine may use it.
type manifestTexts struct {
	mu    sync.Mutex
	calls patient.Calls[manifestText]
}

type manifestText struct {
	data []byte
	err  error
}

const (
	// manifestTextWait is how long a file system may take to give a file to read.
	manifestTextWait = 2 * time.Second
	// manifestTextsMost is how many may give none at a time.
	manifestTextsMost = 4
)

// read returns the text of a manifest, or why it is not shown: values of Secrets are shown nowhere.
func (m *manifestTexts) read(ctx context.Context, path string) (text []byte, why string) {
	if !filepath.IsAbs(path) {
		return nil, "It is what the URL answered, and no file."
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls.Most = manifestTextsMost
	got, err := m.calls.Ask(path, manifestTextWait, ctx.Done(), func() manifestText {
		data, err := manifests.ReadFile(path)
		return manifestText{data, err}
	})
	if err == nil {
		err = got.err
	}
	switch {
	case err != nil:
		return nil, fmt.Sprintf("It cannot be read now: %v.", err)
	case decode.IsPrivate(got.data):
		return nil, "Its text is not shown, as it may hold a Secret: open the file itself."
	}
	return got.data, ""
}
