package gc

import (
	"log/slog"
	"slices"
	"testing"

	"google.golang.org/grpc/codes"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/agent/checkpoint"
	"monopod/agent/pleg"
	"monopod/agent/status"
	"monopod/cri"
	"monopod/cri/critest"
)

// The list of adopted sandboxes ends with them. A listing that lacks one proves nothing.
func TestAdoptedSandboxesThatAreGoneLeaveTheList(t *testing.T) {
	r := critest.New(t)
	c := cri.New(r.Conn())
	root, err := checkpoint.OpenRoot(t.TempDir())
	noErr(t, err)
	defer root.Close()
	id, err := c.RunSandbox(t.Context(), &rt.PodSandboxConfig{Metadata: &rt.PodSandboxMetadata{Name: "web", Namespace: "default", Uid: "u"}}, "")
	noErr(t, err)
	noErr(t, root.Adopt([]string{id, "gone"}))
	store, err := status.Open(t.TempDir(), slog.New(slog.DiscardHandler))
	noErr(t, err)
	g := &Garbage{Root: root, Log: slog.New(slog.DiscardHandler), Lister: pleg.NewWatch(c, root.Marks, store, slog.New(slog.DiscardHandler)).Lister}
	g.collectAdopted(t.Context(), nil)
	if ids := root.Marks.Adopted(); !slices.Equal(ids, []string{id}) {
		t.Errorf("%v is adopted", ids)
	}
	r.Fault(critest.On("PodSandboxStatus").Fail(codes.Unavailable, "down"))
	noErr(t, c.RemoveSandbox(t.Context(), id))
	g.collectAdopted(t.Context(), nil)
	if ids := root.Marks.Adopted(); len(ids) != 1 {
		t.Error("a runtime that does not answer proves that a sandbox is gone")
	}
}
