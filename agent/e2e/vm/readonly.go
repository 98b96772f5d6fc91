package main

// The root file system is read-only, but for what the agent and the runtime need.
const freeze = `systemctl stop monopod $unit
for d in /var/lib/monopod $folders /var/lib/cni /var/log /etc/monopod/manifests; do mkdir -p $d; mount --bind $d $d; done
systemctl restart systemd-journald
mount -o remount,bind,ro /
no touch /etc/file
systemctl start $unit monopod`

// thaw undoes freeze.
const thaw = `set +e
mount -o remount,bind,rw /; umount /var/log/pods; systemctl stop monopod
umount -l /var/lib/monopod $folders /var/lib/cni /var/log /etc/monopod/manifests
systemctl restart $unit systemd-journald monopod`

// runsOnAReadOnlyRoot: on a root file system that is read-only the agent and its pods
// run; where logs cannot be written either, new pods wait and it is said why.
func runsOnAReadOnlyRoot(b *box) error {
	defer func() { _, _ = b.sh(thaw) }()
	return b.all(freeze).then(func() error {
		if err := b.pods(3); err != nil {
			return err
		}
		if err := b.leavesAlone(3, b.killAgent); err != nil {
			return err
		}
		if err := b.all(`i=$(systemctl show -P InvocationID monopod)
no journalctl -o cat _SYSTEMD_INVOCATION_ID=$i --grep 'read-only file system'`,
			`mount --bind /var/log/pods /var/log/pods; mount -o remount,bind,ro /var/log/pods`).then(func() error {
			return b.pod("dark", "", "")
		}); err != nil {
			return err
		}
		if err := b.until(`monopod describe dark | grep '/var/log/pods.*read-only file system'`); err != nil {
			return err
		}
		return b.all("umount /var/log/pods").then(func() error { return b.says(running(4)) })
	})
}
