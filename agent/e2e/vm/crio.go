package main

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	"monopod/agent/e2e/rig"
)

// ofCRIO is a CRI-O as its own defaults are, with that OCI runtime. A sandbox has no process there.
func ofCRIO(oci string) maker {
	return maker{usual: service{rig.CRIO, systemd}, perPod: 1, oci: oci, words: strings.ReplaceAll(crioWords, "OCI", oci), sturdy: keepImages,
		rig: "MONOPOD_CRIO=/payload/crio MONOPOD_CRIO_RUNTIME=" + oci}
}

const crioWords = `unit=crio folders='/var/lib/containers /var/lib/crio'
mounts='/overlay/[0-9a-f]*/merged \|/userdata/shm ' rootfs='/overlay/[0-9a-f]*/merged '
stored=/var/lib/containers/storage/overlay-containers
running() { OCI list | awk '$3 == "running" {print $1, $2}'; }
records() { cat $stored/containers.json $stored/volatile-containers.json 2>/dev/null | sed 's/{"id":"/\n&/g' | grep '^{"id"' || true; }
known() { records | cut -d '"' -f 4; }
boxes() { sed -n 's|.*/overlay-containers/\([0-9a-f]*\)/userdata/shm .*|\1|p' /proc/self/mountinfo | sort -u; }
strangers() {
	local c uid
	for c in $(known); do
		uid=$(grep -o 'io.kubernetes.pod.uid[\"]*:[\"]*[^\"]*' $stored/$c/userdata/config.json | sed -n '1s/.*"//p')
		case " $* " in *" ${uid:-none} "*) ;; *) echo $c ;; esac
	done
}
removed() { journalctl -b -u crio -o cat | sed -n 's/.*Removed pod sandbox: \([0-9a-f]\{64\}\).*/\1/p'; }
watched() { pgrep -a conmon | sed 's/.* -c \([0-9a-f]*\).*/\1/'; }
forget() { systemctl stop crio; rm -rf /var/lib/containers/storage/*; }
tag() { skopeo copy -q containers-storage:$1 containers-storage:$2; sync; }
import() { skopeo copy -q docker-archive:/payload/images.tar:$1 containers-storage:$2; sync; }
again() { import ` + rig.Busybox + ` registry.test/again/busybox:1; }
`

// crioSettings are what a machine must say that has its programs and images elsewhere.
const crioSettings = `[crio.image]
pause_image = "%[1]s"
[crio.network]
plugin_dirs = ["/usr/lib/cni"]
[crio.runtime]
default_runtime = "%[2]s"
cgroup_manager = "%[3]s"
[crio.runtime.runtimes.%[2]s]
runtime_root = "/run/%[2]s"
`

// keepImages is the setting of docs/cri-o.md without which a power cut deletes all images.
const keepImages = `printf '[crio]\nclean_shutdown_file = ""\n' >/etc/crio/crio.conf.d/20-keep.conf; systemctl restart crio`

// crioUnits are those that CRI-O comes with.
const crioUnits = `cat >/etc/systemd/system/crio.service <<'EOF'
[Unit]
Wants=network-online.target
After=network-online.target
[Service]
Type=notify
ExecStart=/usr/local/bin/crio
ExecReload=/bin/kill -s HUP $MAINPID
TasksMax=infinity
OOMScoreAdjust=-999
TimeoutStartSec=0
Restart=on-failure
RestartSec=10
WatchdogSec=60s
[Install]
WantedBy=multi-user.target
EOF
cat >/etc/systemd/system/crio-wipe.service <<'EOF'
[Unit]
Before=crio.service
RequiresMountsFor=/var/lib/containers
[Service]
Type=oneshot
ExecStart=/usr/local/bin/crio wipe
[Install]
WantedBy=multi-user.target
EOF`

// useCRIO has CRI-O run in place of containerd, with its images. Libraries that the machine has are
// its own.
func (b *box) useCRIO(driver string) error {
	const install = `[ -e /usr/local/bin/crio ] || { systemctl disable -q --now containerd
cp /payload/crio/* /usr/local/bin/; mkdir -p /etc/containers /etc/crio/crio.conf.d
for f in /payload/libraries/*; do [ -e /usr/lib/x86_64-linux-gnu/${f##*/} ] || cp $f /usr/local/lib/; done; ldconfig
echo '{"default": [{"type": "insecureAcceptAnything"}]}' >/etc/containers/policy.json; }`
	images := ""
	for _, image := range []string{rig.Pause, rig.Busybox} {
		images += fmt.Sprintf("grep -qs '\"%[1]s\"' /var/lib/containers/storage/overlay-images/images.json || import %[1]s %[1]s\n", image)
	}
	return b.all(install, crioUnits,
		"cat >/etc/crio/crio.conf.d/10-trial.conf <<'EOF'\n"+fmt.Sprintf(crioSettings, rig.Pause, b.maker.oci, driver)+"EOF",
		"systemctl daemon-reload; systemctl enable -q crio crio-wipe; systemctl restart crio", images).err
}

// crioPrograms puts CRI-O's programs, which are in bin, into tree, and all else of this machine that
// it needs: what watches containers, what runs them, what imports images, and their libraries.
func crioPrograms(tree, bin, oci string) error {
	const script = `mkdir -p crio libraries
for p in conmon skopeo "$2"; do cp -L "$(command -v "$p")" crio/; done
cp -L "$1/crio" "$1/pinns" crio/
for p in crio/*; do ldd $p || true; done | awk '$2 == "=>" && $3 ~ "^/" {print $3}' | sort -u | xargs cp -L -t libraries`
	bin, err := filepath.Abs(bin)
	if err != nil {
		return err
	}
	cmd := exec.Command("bash", "-ec", script, "bash", bin, oci)
	cmd.Dir = tree
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("the programs of CRI-O: %w: %s", err, out)
	}
	return nil
}

// outlivesPowerCuts: with CRI-O's own settings a power cut deletes all images. That is said before and
// after, and the pods are back once the images are. With the setting of docs/cri-o.md they are back by
// themselves. The machine is left with the settings that it had.
func outlivesPowerCuts(b *box) error {
	const (
		warning = `monopod doctor | grep -F 'a power cut makes CRI-O delete all images'`
		gone    = `no grep -qsF '"` + rig.Busybox + `"' /var/lib/containers/storage/overlay-images/images.json`
		tells   = `monopod ps 2>&1 | grep -F 'unable to pull image' | grep -F '` + rig.Pause + `'
systemctl show -P StatusText monopod | grep -x '2 pods: 2 waiting'`
		load   = `monopod images load /payload/images.tar; sync`
		silent = `rm -f /var/lib/crio/clean.shutdown.supported; if ` + warning + `; then false; fi`
		back   = `rm -f /etc/crio/crio.conf.d/20-keep.conf; systemctl restart crio`
	)
	if err := b.pods(2); err != nil {
		return err
	}
	for _, step := range []func() error{
		func() error { return b.until(warning) },
		b.cut,
		func() error { return b.until(tells) },
		func() error { return b.all(gone, load).err },
		func() error { return b.says(running(2)) },
		func() error { return b.all(keepImages, silent).err },
		b.cut,
		func() error { return b.says(running(2)) },
		func() error { return b.whole(2, 0) },
		func() error { return b.all(back).err },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// cut takes the power away from the machine, and gives it back.
func (b *box) cut() error {
	b.machine.cut()
	return b.machine.boot(b.ctx, bootIn)
}
