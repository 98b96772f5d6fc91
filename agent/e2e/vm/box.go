package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"monopod/agent/e2e/rig"
	"monopod/agent/e2e/writelog"
)

// limit is how long anything may take in the machine before it counts as not
// happening: an emulator on a machine with other work to do is slow.
const limit = 3 * time.Minute

// box is the machine of the trials, with the package installed and a runtime
// running. A trial that passes leaves it to the next one.
type box struct {
	dir, disk, payload string
	maker              maker // of the machine's runtimes
	accel              string
	serves             bool // disks over a socket, so that their writes can be recorded
	machine            *machine
	count              int // of machines
	ctx                context.Context

	kept, lost int // of the trial that runs
}

// open boots a machine with that hardware and installs everything, unless there is one.
func (b *box) open(ctx context.Context, h hardware) error {
	b.ctx = ctx
	if b.machine != nil {
		return nil
	}
	if err := b.boot(ctx, h); err != nil {
		return err
	}
	return b.use(b.maker.usual)
}

// boot boots with kvm where that works, which only a boot shows: it takes some seconds, or
// hangs.
func (b *box) boot(ctx context.Context, h hardware) error {
	if b.accel != "" {
		return b.bootWith(ctx, h, bootIn)
	}
	if _, err := os.Stat("/dev/kvm"); err == nil {
		b.accel = "kvm"
		if b.bootWith(ctx, h, bootIn/6) == nil {
			return nil
		}
		b.discard()
	}
	b.accel = "tcg,thread=multi"
	return b.bootWith(ctx, h, bootIn)
}

func (b *box) bootWith(ctx context.Context, h hardware, limit time.Duration) error {
	b.count++
	dir := filepath.Join(b.dir, fmt.Sprint(b.count))
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	var err error
	if b.machine, err = newMachine(dir, b.disk, b.payload, b.accel, h); err != nil {
		return err
	}
	b.machine.words = b.maker.words
	if b.serves {
		if b.machine.served, err = writelog.Serve(b.machine.diskSocket(), b.machine.disk()); err != nil {
			return err
		}
	}
	return b.machine.boot(ctx, limit)
}

// discard gives up the machine.
func (b *box) discard() {
	if b.machine != nil {
		b.machine.cut()
		if b.machine.served != nil {
			if err := b.machine.served.Close(); err != nil {
				fmt.Println("the machine's disk:", err)
			}
		}
		_ = os.RemoveAll(b.machine.dir)
		b.machine = nil
	}
}

// reset has the machine as a trial expects it: the package is installed, the agent
// runs, and there is no pod.
func (b *box) reset(ctx context.Context) error {
	b.ctx = ctx
	return b.all(
		`dpkg -s monopod 2>/dev/null | grep -q '^Version: 1.0' || dpkg -i /payload/monopod_1.0_amd64.deb`,
		`rm -rf /etc/monopod/manifests/*; d=/etc/systemd/system/monopod.service.d
if [ -e $d ]; then rm -r $d; systemctl daemon-reload; fi
systemctl restart monopod`,
	).then(b.noPods)
}

// steps is a chain that ends at its first error.
type steps struct{ err error }

func (s steps) then(next func() error) error {
	if s.err != nil {
		return s.err
	}
	return next()
}

// all runs scripts, one after the other.
func (b *box) all(scripts ...string) steps {
	for _, s := range scripts {
		if _, err := b.sh(s); err != nil {
			return steps{err}
		}
	}
	return steps{}
}

// sh runs a script in the machine.
func (b *box) sh(script string) (string, error) { return b.machine.do(b.ctx, limit, script) }

// until runs a script until it succeeds.
func (b *box) until(script string) error {
	return rig.Until(b.ctx, limit, func() error {
		_, err := b.sh(script)
		if err != nil {
			time.Sleep(time.Second) // asking costs an emulator more than that
		}
		return err
	})
}

// says waits until the unit's status is exactly this.
func (b *box) says(status string) error {
	return b.until(fmt.Sprintf(`s=$(systemctl show -P StatusText monopod)
[ "$s" = %q ] || { echo "the status is $s"; false; }`, status))
}

// dropIn is a script that restarts the unit with other settings, until the next trial.
func (b *box) dropIn(settings string) string {
	return fmt.Sprintf(`mkdir -p /etc/systemd/system/monopod.service.d
printf '[Service]\n%s\n' >/etc/systemd/system/monopod.service.d/trial.conf
systemctl daemon-reload; systemctl restart monopod`, strings.ReplaceAll(settings, "\n", `\n`))
}

// noPods waits until neither agent nor runtime has any pod.
func (b *box) noPods() error {
	return b.all().then(func() error {
		if err := b.says("0 pods"); err != nil {
			return err
		}
		return b.until(`n=$(known | wc -l); [ $n = 0 ] || { echo "$n containers are left"; false; }`)
	})
}

// pod writes the manifest of a pod that runs until it is told to end.
func (b *box) pod(name, spec, container string) error {
	return b.podWith("trap 'exit 0' TERM; sleep 100000 & wait", name, spec, container)
}

// podWith writes the manifest of a pod that runs a script without double quotes.
func (b *box) podWith(script, name, spec, container string) error {
	if spec == "" {
		spec = "restartPolicy: Always"
	}
	text := fmt.Sprintf(`apiVersion: v1
kind: Pod
metadata: {name: %s}
spec:
  terminationGracePeriodSeconds: 2
  %s
  containers:
  - name: main
    image: %s
    imagePullPolicy: IfNotPresent
    command: [sh, -c, "%s"]
    %s
`, name, spec, rig.Busybox, script, container)
	_, err := b.sh(fmt.Sprintf("cd /etc/monopod/manifests; cat >.new <<'EOF'\n%sEOF\nsync .new; mv .new %s.yaml; sync .", text, name))
	return err
}

// pods writes n of them and waits until they run.
func (b *box) pods(n int) error {
	for k := range n {
		if err := b.pod(fmt.Sprintf("web%d", k), "", ""); err != nil {
			return err
		}
	}
	return b.says(running(n))
}

// running is the unit's status with n pods that run.
func running(n int) string {
	if n == 1 {
		return "1 pod: 1 running"
	}
	return fmt.Sprintf("%d pods: %d running", n, n)
}

// containers returns what runs by the runtime's own account: id and process id of
// each container and sandbox.
func (b *box) containers() (map[string]bool, error) {
	out, err := b.sh("running")
	found := map[string]bool{}
	for line := range strings.Lines(out) {
		found[strings.TrimSpace(line)] = true
	}
	return found, err
}

// leavesAlone does something that no container may notice, waits until the agent says
// that all n pods run, and counts the containers that kept their ids.
func (b *box) leavesAlone(n int, do func() error) error {
	before, err := b.containers()
	if err != nil {
		return err
	}
	if want := b.maker.perPod * n; len(before) != want {
		return fmt.Errorf("%d containers run, want %d", len(before), want)
	}
	if err := do(); err != nil {
		return err
	}
	if err := b.says(running(n)); err != nil {
		return err
	}
	return b.compare(before)
}

// compare counts the containers of before that still run, and those that do not.
func (b *box) compare(before map[string]bool) error {
	after, err := b.containers()
	if err != nil {
		return err
	}
	for _, c := range slices.Collect(maps.Keys(before)) {
		if after[c] {
			b.kept++
		} else {
			b.lost++
		}
	}
	if more := len(after) - b.kept; more > 0 {
		return fmt.Errorf("%d containers are new", more)
	}
	return nil
}

// agentIsAnother waits until the unit's main process is another than this and ready.
func (b *box) agentIsAnother(pid string) error {
	return b.until(fmt.Sprintf(`p=$(systemctl show -P MainPID monopod)
if [ $p = 0 ] || [ $p = %s ]; then echo "process $p"; false; fi
systemctl is-active monopod`, pid))
}

// explain returns what helps to understand a failure.
func (b *box) explain() string {
	if b.machine == nil || b.machine.shell == nil {
		return ""
	}
	out, err := b.machine.do(b.ctx, time.Minute, `set +e; systemctl status -n 0 monopod $unit
monopod ps; running; journalctl -n 40 -u monopod -o cat; journalctl -n 10 -u $unit -o cat
journalctl -b -n 10 -k -p warning -o cat; journalctl -b -n 40 -u $unit -o cat -p info --grep 'exit|dead|shim|kill|panic|ailed to load'`)
	return fmt.Sprintln(out, err)
}

// reboot reboots the machine as its user does, and makes sure that this is another boot.
func (b *box) reboot() error {
	const boot = "cat /proc/sys/kernel/random/boot_id"
	before, err := b.sh(boot)
	if err != nil {
		return err
	}
	if err := b.machine.reboot(b.ctx); err != nil {
		return err
	}
	_, err = b.sh(fmt.Sprintf("[ $(%s) != %s ]", boot, before))
	return err
}
