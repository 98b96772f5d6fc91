package print

import (
	"bytes"
	"io"
	"strings"
	"testing"
)

// Programs loop over the items, and jq ends with an error where there are none to loop over.
func TestAListOfNoPodsIsEmpty(t *testing.T) {
	for output, want := range map[string]string{"json": `"items": []`, "yaml": "items: []"} {
		var ps, described bytes.Buffer
		err := Ps(&ps, io.Discard, Listing{Some: true}, Format{Output: output})
		if err != nil || !strings.Contains(ps.String(), want) {
			t.Errorf("ps -o %s: %v, %s", output, err, &ps)
		}
		err = PodsAs(&described, output, nil)
		if err != nil || !strings.Contains(described.String(), want) {
			t.Errorf("describe -o %s: %v, %s", output, err, &described)
		}
	}
}
