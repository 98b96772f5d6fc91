package checkpoint

import (
	"bytes"
	"log/slog"
	"os"
	"reflect"
	"strings"
	"testing"

	"monopod/manifests"
)

func TestTheRecordOfTheFolderIsKept(t *testing.T) {
	var said bytes.Buffer
	r, log := &Root{Dir: t.TempDir()}, slog.New(slog.NewTextHandler(&said, nil))
	want := manifests.Record{Folder: &manifests.Folder{Path: "/m"}}
	if got := r.Folder(log); !reflect.DeepEqual(got, manifests.Record{}) || said.Len() > 0 {
		t.Errorf("before it was saved: %+v, said %s", got, &said)
	}
	if err := r.SaveFolder(want); err != nil {
		t.Fatal(err)
	}
	if got := r.Folder(log); !reflect.DeepEqual(got, want) || said.Len() > 0 {
		t.Errorf("saved: %+v, said %s", got, &said)
	}
	if err := os.WriteFile(r.Path("folder.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := r.Folder(log); !reflect.DeepEqual(got, manifests.Record{}) || !strings.Contains(said.String(), "unusable; ignoring it") {
		t.Errorf("damaged: %+v, said %s", got, &said)
	}
}
