package rollout

import (
	"testing"

	"monopod/agent/checkpoint"
)

func TestWhetherThereIsAnythingToRemember(t *testing.T) {
	for name, row := range map[string]struct {
		is   Record
		want bool
	}{
		"nothing":                                {Record{}, false},
		"a manifest gives it":                    {Record{Offered: v1st}, true},
		"a worker has it":                        {Record{Works: true}, true},
		"a previous agent left something of it":  {Record{Left: map[string]*checkpoint.Checkpoint{}}, true},
		"the runtime has something of it":        {Record{Stray: true}, true},
		"its owner stopped it":                   {Record{Stop: &Stop{}}, true},
		"there is a record of a trial":           {Record{Trial: &Trial{}}, true},
		"its manifest is gone, which is no news": {Record{Gone: true}, false},
	} {
		if got := row.is.HasAnything(); got != row.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
