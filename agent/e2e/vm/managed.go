package main

// startsARuntime: under its unit the agent has systemd start a containerd of its own. It outlives the
// agent, is started again when it dies, and containers outlive both. The machine is left with the
// runtime and the settings that it had.
func startsARuntime(b *box) error {
	const (
		begin = `cd /etc/monopod; cp -p config.yaml config.before
sed -i 's/^#*managedRuntime: .*/managedRuntime: true/; s/^cgroupDriver/#&/; s/^containerRuntimeEndpoint/#&/' config.yaml
grep -q '^managedRuntime: true' config.yaml; systemctl restart monopod`
		answers = `ctr -a /var/lib/monopod/containerd/sock version >/dev/null`
		images  = `ctr -a /var/lib/monopod/containerd/sock -n k8s.io images import /payload/images.tar`
		unit    = `systemctl show -P MainPID $(systemctl list-units --plain --no-legend 'monopod-containerd-*' | cut -d ' ' -f 1)`
		note    = `pgrep -f '^sh -c trap' >/run/main; grep -q /kubepods.slice/ /proc/$(cat /run/main)/cgroup; ` + unit + ` >/run/runtime; kill -0 $(cat /run/runtime)`
		same    = `[ "$(pgrep -f '^sh -c trap')" = "$(cat /run/main)" ]`
		end     = `systemctl stop monopod 'monopod-containerd-*'; mv /etc/monopod/config.before /etc/monopod/config.yaml
[ -z "$(systemctl list-units --plain --no-legend 'monopod-containerd-*')" ]; rm -r /var/lib/monopod/containerd; systemctl start monopod`
	)
	for _, step := range []func() error{
		func() error { return b.all(begin).err },
		func() error { return b.until(answers) },
		func() error { return b.all(images).err },
		func() error { return b.pod("web", "", "") },
		func() error { return b.says(running(1)) },
		func() error { return b.all(note, "systemctl restart monopod").err },
		func() error { return b.says(running(1)) },
		func() error {
			return b.all(same, `[ "$(`+unit+`)" = "$(cat /run/runtime)" ]`, "kill -9 $(cat /run/runtime)").err
		},
		func() error { return b.until(answers + ` && [ "$(` + unit + `)" != "$(cat /run/runtime)" ]`) },
		func() error { return b.says(running(1)) },
		func() error { return b.all(same, "rm /etc/monopod/manifests/*").err },
		func() error { return b.until(`if pgrep -f '^sh -c trap'; then false; fi`) },
		func() error { return b.until(`[ -z "$(monopod ps -o name)" ]`) },
		func() error { return b.all(end).err },
		func() error { return b.noPods() },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}
