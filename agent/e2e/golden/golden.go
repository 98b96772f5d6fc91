// Package golden compares what an agent does with pods with what a kubelet did:
// recordings of one are in testdata/golden. A recording becomes facts, which two
// runs have in common if both did the same.
package golden

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// Facts are what two recordings are compared by: a path to a value of JSON,
// without what differs from run to run.
type Facts map[string]any

// Case is what the kubelet did with one manifest.
type Case struct {
	Manifest json.RawMessage   `json:"manifest"`
	Errors   map[string]string `json:"errors"` // what the runtime answered, by method
	Facts    Facts             `json:"facts"`
}

// Read returns the cases of one of the recordings in dir by name. The error
// satisfies fs.ErrNotExist if there is no such recording.
func Read(dir, recording string) (map[string]Case, error) {
	b, err := os.ReadFile(filepath.Join(dir, recording+".json"))
	if err != nil {
		return nil, fmt.Errorf("recording of a kubelet: %w", err)
	}
	cases := map[string]Case{}
	if err := json.Unmarshal(b, &cases); err != nil {
		return nil, fmt.Errorf("recording %s: %w", recording, err)
	}
	return cases, nil
}

// Recorded is what an agent did with one pod.
type Recorded struct {
	Calls   []Call                       // in order
	Pod     map[string]any               // as reported while it ran, as JSON values; nil: not at all
	Cgroups map[string]map[string]string // the files of the pod's cgroups, trimmed, by path and name
	// Elsewhere are parts of paths of this run, and what they are in the recordings.
	Elsewhere map[string]string
}

// Call is one CRI call that changes something, as JSON values with the names of
// the protocol. Response is nil if it failed.
type Call struct {
	Method            string
	Request, Response map[string]any
}

// NewCall returns a call; response is nil if it failed.
func NewCall(method string, request, response proto.Message) (Call, error) {
	c := Call{Method: method}
	var err error
	if c.Request, err = messageValues(request); err != nil {
		return c, err
	}
	if response != nil {
		c.Response, err = messageValues(response)
	}
	return c, err
}

func messageValues(m proto.Message) (map[string]any, error) {
	b, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("message as JSON: %w", err)
	}
	return Values(json.RawMessage(b))
}

// Values returns anything that becomes a JSON object as the values of that.
func Values(v any) (map[string]any, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("as JSON: %w", err)
	}
	var out map[string]any
	if err := json.Unmarshal(b, &out); err != nil {
		return nil, fmt.Errorf("as JSON values: %w", err)
	}
	return out, nil
}
