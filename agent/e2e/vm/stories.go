package main

import (
	"fmt"
	"strings"
	"time"
)

// scenarios of the end-to-end tests that depend on cgroups, mounts and processes.
var scenarios = []string{"StartsAPod", "TellsOfAnOOMKill", "RestartsACrashedContainer",
	"LeavesPodsOnSIGTERM", "RecoversFromARuntimeCrash"}

// stories runs scenarios of the end-to-end tests on containerds of their own.
func stories(version, driver string) func(b *box) error {
	return func(b *box) error {
		names := scenarios
		if driver == cgroupfs {
			names = append(names[:len(names):len(names)], "PlacesPodsInCgroups", "EndsStraysWithTheCgroup")
		}
		out, err := b.machine.do(b.ctx, 12*time.Minute, fmt.Sprintf(`systemctl stop monopod containerd; cd /var/tmp
export MONOPOD_BIN=/usr/bin/monopod MONOPOD_CACHE=/payload/cache MONOPOD_PROGRAMS=/payload/programs
export MONOPOD_CGROUP_DRIVER=%s
/payload/e2e.test -test.v -test.run '^TestMonopod$/^%s$/^(%s)$' >e2e.log 2>&1 || {
	grep -v '^=== ' e2e.log | tail -n 80; false
}
grep -c '^        --- PASS' e2e.log; systemctl start containerd monopod`, driver, version, strings.Join(names, "|")))
		if err == nil && out != fmt.Sprint(len(names)) {
			err = fmt.Errorf("%s stories passed, want %d", out, len(names))
		}
		return err
	}
}
