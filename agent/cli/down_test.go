package cli

import (
	"bytes"
	"errors"
	"testing"

	"monopod/agent/cli/client"
	"monopod/agent/cli/clitest"
	"monopod/agent/cli/print"
	"monopod/agent/status"
)

func TestPsWithoutAnAgent(t *testing.T) {
	rows := []struct {
		name, pods string
		manifests  status.Manifests
		options    Options
	}{
		{"well", well, status.Manifests{Dir: "/m"}, Options{}},
		{"wide", well, status.Manifests{Dir: "/m"}, Options{Format: print.Format{Output: "wide"}, Choice: client.Choice{Names: []string{"web"}}}},
		{"yaml", well, status.Manifests{Dir: "/m"}, Options{Format: print.Format{Output: "yaml"}, Choice: client.Choice{Names: []string{"web"}}}},
		{"troubled", troubled, refusals(), Options{}},
		{"none", "", status.Manifests{Dir: "/m"}, Options{}},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			root := clitest.Previous(t, r.pods, r.manifests)
			var out, errs bytes.Buffer
			o := r.options
			o.Source, o.Now, o.Err, o.Endpoint = client.Source{Socket: "/nowhere/monopod.sock", Root: root}, now, &errs, "/nowhere/runtime.sock"
			if err := Ps(t.Context(), &out, o); !errors.Is(err, client.ErrDown) {
				t.Errorf("err %v", err)
			}
			clitest.Golden(t, errs.String()+out.String())
		})
	}
}
