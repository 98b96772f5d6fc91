package checkpoint

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"

	"monopod/agent/status"
	"monopod/manifests"
)

// answerHead is the first line of the file of an answer; the body follows it.
type answerHead struct {
	URL      string `json:"url"` // hex SHA-256 of it: it may hold secrets
	Sum      string `json:"sum"` // hex SHA-256 of the body
	ETag     string `json:"etag,omitempty"`
	Modified string `json:"lastModified,omitempty"`
	Unproven bool   `json:"unproven,omitempty"`
}

const answerFile = "manifest-url"

// Answer reads the last complete answer of a URL; nil: there is none. An unusable one
// is logged and ignored.
func (r *Root) Answer(url string, log *slog.Logger) *manifests.Answer {
	b, err := os.ReadFile(r.Path(answerFile))
	if errors.Is(err, fs.ErrNotExist) || url == "" {
		return nil
	}
	var head answerHead
	line, body, _ := bytes.Cut(b, []byte("\n"))
	if err == nil {
		err = json.Unmarshal(line, &head)
	}
	if err == nil && head.Sum != sum(body) {
		err = errors.New("its sum is wrong")
	}
	if err != nil {
		log.Error("saved answer of the manifest URL is unusable; ignoring it", "file", r.Path(answerFile), "err", err)
		return nil
	}
	if head.URL != sum([]byte(url)) {
		return nil
	}
	return &manifests.Answer{Data: body, ETag: head.ETag, Modified: head.Modified, Unproven: head.Unproven}
}

// SaveAnswer writes a complete answer of a URL to disk, synced.
func (r *Root) SaveAnswer(url string, a manifests.Answer) error {
	line, err := json.Marshal(answerHead{URL: sum([]byte(url)), Sum: sum(a.Data), ETag: a.ETag, Modified: a.Modified, Unproven: a.Unproven})
	if err != nil {
		return fmt.Errorf("answer of the manifest URL: %w", err)
	}
	return status.WriteFile(r.Path(answerFile), append(append(line, '\n'), a.Data...), 0o600)
}

func sum(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}
