package gc

import (
	"errors"
	"log/slog"
	"os"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"monopod/agent/checkpoint"
	"monopod/agent/volume"
)

// What a former agent made is recorded when the next one starts, which need not be asked again.
func TestClaimsAreRecordedOnce(t *testing.T) {
	root, err := checkpoint.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(root.Close)
	data := types.NamespacedName{Namespace: "default", Name: "data"}
	err = os.MkdirAll(volume.ClaimDir(root.Dir, data), 0o777)
	(&Claims{Garbage: &Garbage{Root: root, Log: slog.New(slog.DiscardHandler)}}).Run(t.Context())
	if err := errors.Join(err, os.RemoveAll(root.Path("volumes"))); err != nil {
		t.Fatal(err)
	}
	if !volume.IsMissing(root.Dir, data) {
		t.Error("it would be made again")
	}
}
