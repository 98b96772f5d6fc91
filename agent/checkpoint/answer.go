package checkpoint

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	"monopod/agent/disk"
	"monopod/manifests"
)

// answerHead is the first line of the file of an answer; the body follows it.
type answerHead struct {
	URL      string `json:"url"` // hex SHA-256 of the URL, which may contain secrets
	Sum      string `json:"sum"` // hex SHA-256 of the body
	ETag     string `json:"etag,omitempty"`
	Modified string `json:"lastModified,omitempty"`
	Unproven bool   `json:"unproven,omitempty"`
	Signer   string `json:"signer,omitempty"` // the public key by which the body is signed
	Serial   int64  `json:"serial,omitempty"` // of the signed body
}

const answerFile = "manifest-url"

// Answer reads the last complete answer of a URL; nil: there is none. An unusable one
// is logged and ignored.
func (r *Root) Answer(url string, log *slog.Logger) *manifests.Answer {
	if url == "" {
		return nil
	}
	var head answerHead
	var body []byte
	err := disk.ReadOrAside(r.Path(answerFile), func(b []byte) error {
		line, rest, _ := bytes.Cut(b, []byte("\n"))
		if err := disk.JSON(&head)(line); err != nil {
			return err
		}
		if body = bytes.Clone(rest); head.Sum != sum(body) {
			return errors.New("its sum is wrong")
		}
		return nil
	})
	if err != nil {
		r.lost(log, "saved answer of the manifest URL is unusable; ignoring it", err)
		return nil
	}
	if head.URL != sum([]byte(url)) {
		return nil
	}
	return &manifests.Answer{Data: body, ETag: head.ETag, Modified: head.Modified, Unproven: head.Unproven,
		Signer: head.Signer, Serial: head.Serial}
}

// SaveAnswer writes a complete answer of a URL to disk, synced.
func (r *Root) SaveAnswer(url string, a manifests.Answer) error {
	line, err := json.Marshal(answerHead{URL: sum([]byte(url)), Sum: sum(a.Data), ETag: a.ETag, Modified: a.Modified,
		Unproven: a.Unproven, Signer: a.Signer, Serial: a.Serial})
	if err != nil {
		return fmt.Errorf("answer of the manifest URL: %w", err)
	}
	return disk.WriteFile(r.Path(answerFile), append(append(disk.Seal(line), '\n'), a.Data...), 0o600)
}

// serialFile holds which signed content of the manifest URL counted last. An agent that does not know it
// goes by the number that the answer was saved with.
const serialFile = "manifest-serial"

// savedSerial is the content of that file.
type savedSerial struct {
	URL string `json:"url"` // as in answerHead
	manifests.Serial
}

// Serial reads which signed content of a URL counted last; nil: it is not known. An unusable file is
// logged and ignored.
func (r *Root) Serial(url string, log *slog.Logger) *manifests.Serial {
	var is savedSerial
	err := disk.ReadOrAside(r.Path(serialFile), disk.JSON(&is))
	if err != nil {
		r.lost(log, "saved serial number of the manifest URL is unusable; an earlier signed list may count", err)
		return nil
	}
	if is.URL != sum([]byte(url)) {
		return nil
	}
	return &is.Serial
}

// SaveSerial writes which signed content of a URL counted last to disk, synced.
func (r *Root) SaveSerial(url string, s manifests.Serial) error {
	b, err := json.Marshal(savedSerial{sum([]byte(url)), s})
	if err == nil {
		err = disk.WriteFile(r.Path(serialFile), append(disk.Seal(b), '\n'), 0o600)
	}
	if err != nil {
		return fmt.Errorf("serial number of the manifest URL: %w", err)
	}
	return nil
}

func sum(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}
