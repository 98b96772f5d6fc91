package main

import (
	"fmt"
	"strings"
	"time"
)

// scenarios of the end-to-end tests that depend on cgroups, mounts and processes.
var scenarios = []string{"StartsAPod", "TellsOfAnOOMKill", "RestartsACrashedContainer",
	"LeavesPodsOnSIGTERM", "RecoversFromARuntimeCrash"}

// stories runs scenarios of the end-to-end tests on runtimes of their own.
func stories(version, driver string) func(b *box) error {
	return func(b *box) error {
		names := scenarios
		if driver == cgroupfs {
			names = append(names[:len(names):len(names)], "PlacesPodsInCgroups", "HoldsOthersToWhatIsReserved", "EndsStraysWithTheCgroup")
		}
		log, err := b.endToEnd(driver, fmt.Sprintf("^TestMonopod$/^%s$/^(%s)$", version, strings.Join(names, "|")))
		if n := strings.Count(log, "\n        --- PASS"); err == nil && n != len(names) {
			err = fmt.Errorf("%d stories passed, want %d", n, len(names))
		}
		return err
	}
}

// endToEnd runs end-to-end tests, with runtimes that have that driver of cgroups, and
// returns their log.
func (b *box) endToEnd(driver, tests string) (string, error) {
	return b.alone("cd /payload/agent/e2e; export MONOPOD_CGROUP_DRIVER=" + driver + " " + b.maker.rig + `
./e2e.test -test.v -test.run '` + tests + `' >/var/tmp/log 2>&1 || { grep -E 'UNKNOWN|not yet|cases:|--- FAIL|_test.go' /var/tmp/log
grep -v '^=== ' /var/tmp/log | tail -n 60; false; }
grep -v '^=== ' /var/tmp/log`)
}

// alone runs a script that starts runtimes and agents of its own, while those of the
// machine are stopped.
func (b *box) alone(script string) (string, error) {
	out, err := b.machine.do(b.ctx, 25*time.Minute, `systemctl stop monopod $unit
export MONOPOD_SLOW=3 MONOPOD_BIN=/usr/bin/monopod MONOPOD_CACHE=/payload/cache MONOPOD_PROGRAMS=/payload/programs
`+script)
	if err == nil {
		_, err = b.sh("systemctl start $unit monopod")
	}
	return out, err
}
