package main

import "monopod/agent/e2e/rig"

// bootsFromAStick: a machine without a network and without any image, whose manifests and images
// are on a stick, runs its pods after a boot. They run on when the stick is pulled out.
func bootsFromAStick(b *box) error {
	const (
		stick = `truncate -s 64M /stick.img; mke2fs -q -t ext4 /stick.img; mkdir -p /media/stick; mount -o loop /stick.img /media/stick
mkdir -m 700 /media/stick/manifests /media/stick/images; cp /payload/images.tar /media/stick/images/
cat >/media/stick/manifests/web.yaml <<'EOF'
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  terminationGracePeriodSeconds: 2
  containers: [{name: main, image: ` + rig.Busybox + `, command: [sh, -c, "trap 'exit 0' TERM; sleep 100000 & wait"]}]
EOF
umount /media/stick; echo '/stick.img /media/stick ext4 loop,ro,nofail 0 0' >>/etc/fstab`
		settings = `cd /etc/monopod; cp -p config.yaml config.before
sed -i 's|^#*staticPodPath: .*|staticPodPath: /media/stick/manifests|; s|^#*imageDir: .*|imageDir: /media/stick/images|' config.yaml
[ $(diff config.before config.yaml | grep -c '^>') = 2 ]`
		empty = `systemctl stop monopod; forget; sync`
		pull  = `umount -l /media/stick; systemctl restart monopod`
		same  = `[ "$(pgrep -f '^sh -c trap')" = "$(cat /run/main)" ]`
		back  = `monopod forget web; monopod wait web --for gone; sed -i '/^.stick.img/d' /etc/fstab; rm /stick.img
mv /etc/monopod/config.before /etc/monopod/config.yaml; systemctl restart monopod`
	)
	if err := b.all(stick, settings, empty).err; err != nil {
		return err
	}
	for _, step := range []func() error{
		b.reboot,
		func() error { return b.says(running(1)) },
		func() error {
			return b.all(`pgrep -f '^sh -c trap' >/run/main`, `monopod images | grep -F 'in archive /media/stick/images/images.tar'`, pull).err
		},
		func() error { return b.until(`monopod ps 2>&1 | grep -F '/media/stick/manifests: does not exist'`) },
		func() error {
			return b.until(`systemctl show -P StatusText monopod | grep '^1 pod: 1 running; 1 problem in manifests'`)
		},
		func() error { return b.all(same, back).err },
		b.noPods,
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}
