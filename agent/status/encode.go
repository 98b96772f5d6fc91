package status

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"path/filepath"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// nameMax is the longest file name that Linux takes, in bytes.
const nameMax = 255

// podFile returns the file of the pod "namespace/name", relative to the status folder. A name too
// long for a file is cut, and distinguished by its hash.
func podFile(key string) string {
	name := strings.ReplaceAll(key, "/", "_")
	if len(name)+len(".json") > nameMax {
		h := fnv.New64a()
		h.Write([]byte(name))
		suffix := fmt.Sprintf("-%016x", h.Sum64())
		name = name[:nameMax-len(".json")-len(suffix)] + suffix
	}
	return filepath.Join("pods", name+".json")
}

// encoder encodes reports, each in the room of the one before. One goroutine uses it. The zero value
// is ready.
type encoder struct {
	text bytes.Buffer
	json *json.Encoder // to text; it has room of its own for the indentation
}

// encode returns v as indented JSON, a pod with its kind. It is valid until the next call.
func (e *encoder) encode(v any) ([]byte, error) {
	switch v := v.(type) {
	case *v1.Pod:
		p := *v
		p.APIVersion, p.Kind = "v1", "Pod"
		return e.encodeAt("", &p)
	case *joinedManifests:
		return v.encoded.encode((*Store)(v).join())
	}
	return e.encodeAt("", v)
}

// encodeAt returns v as JSON for a line that is indented so far. It is valid until the next call.
func (e *encoder) encodeAt(indentation string, v any) ([]byte, error) {
	if e.json == nil {
		e.json = json.NewEncoder(&e.text)
		e.json.SetEscapeHTML(false)
	}
	e.text.Reset()
	e.json.SetIndent(indentation, "  ")
	err := e.json.Encode(v)
	return e.text.Bytes(), err
}
