package cgroups

import (
	"context"
	"fmt"
)

// Dismantle removes what SetUp made: the levels, and the cgroup of Config.Own that holds them.
// Without Config.Own it does nothing, as the levels are then shared. Call it once no pod has a
// cgroup any more: a process left in one keeps the cgroup, which is an error.
func (m *Manager) Dismantle(ctx context.Context) error {
	if err := m.takeTurn(ctx); err != nil {
		return err
	}
	defer func() { <-m.turn }()
	names, units := m.Names(), m.systemd()
	if !m.own || names.Driver == None {
		return nil
	}
	top := names.top()
	if pids := m.tree.processes(top); len(pids) > 0 {
		return fmt.Errorf("remove cgroup %s: processes %v are in it", top, pids)
	}
	if units != nil {
		for _, unit := range []string{names.level(BestEffort), names.level(Burstable), names.level(Guaranteed), top} {
			if err := units.stop(ctx, unit); err != nil {
				return fmt.Errorf("remove cgroup %s: %w", unit, err)
			}
		}
	}
	if err := m.tree.remove(top); err != nil {
		return fmt.Errorf("remove cgroup %s: %w", top, err)
	}
	return nil
}
