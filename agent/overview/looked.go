package overview

import (
	"errors"
	"fmt"

	"monopod/agent/status"
)

// LookedAt returns nil once each desired pod has a status, because its first pass is over or it
// waits; before are the errors of what must be known earlier, such as the manifests.
func LookedAt(store *status.Store, desired map[string]bool, before ...error) error {
	if err := errors.Join(before...); err != nil {
		return err
	}
	left := 0
	for name := range desired {
		if _, looked := store.Pod(name); !looked {
			left++
		}
	}
	if left > 0 {
		return fmt.Errorf("%d of %d pods have not been looked at yet", left, len(desired))
	}
	return nil
}
