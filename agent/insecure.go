package agent

import (
	"fmt"

	"monopod/agent/checkpoint"
	"monopod/agent/config"
	"monopod/manifests"
)

// checkWriters refuses manifests that other users may write, for an agent that is new. One
// that ran before starts, and says so with its other problems: it has pods to lose.
func checkWriters(c config.Config, once *Once) error {
	if once != nil || c.InsecureManifests || !checkpoint.IsNew(c.Root) {
		return nil
	}
	all := manifests.Writable(c.Manifests)
	if len(all) == 0 {
		return nil
	}
	more := ""
	if len(all) > 1 {
		more = fmt.Sprintf(" (and %d more)", len(all)-1)
	}
	return &SettingsError{Text: fmt.Sprintf("%s %s%s; or accept it with allowInsecureManifests: true", all[0].File, all[0].Message, more)}
}
