package main

import (
	"fmt"
	"strings"
)

// doesAsAKubelet compares what monopod does with the manifests of the recordings of a
// kubelet with what that did, with a driver of cgroups.
func doesAsAKubelet(driver string) func(b *box) error {
	return func(b *box) error {
		log, err := b.endToEnd(driver, "^TestGolden$")
		if err == nil && !strings.Contains(log, "--- PASS: TestGolden") {
			err = fmt.Errorf("nothing was compared: %s", log)
		}
		for line := range strings.Lines(log) {
			if _, score, ok := strings.Cut(line, " cases: "); ok {
				fmt.Println("golden,", driver+":", strings.TrimSpace(score))
			}
		}
		return err
	}
}

// isMeasured prints the times beside those of bare CRI calls. An emulator makes them long;
// what tells is their ratio.
func isMeasured(b *box) error {
	table, err := b.alone("/payload/bench -monopod /usr/bin/monopod -pods 10 -singles 5 -crashes 5 -rounds 2 -idle 10s 2>/var/tmp/log || { tail -n 20 /var/tmp/log; false; }")
	if err == nil {
		fmt.Println(table)
	}
	return err
}
