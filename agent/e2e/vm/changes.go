package main

// followsItsMachine: a pod waits for a serial device until it is connected, runs on when it is
// unplugged, and waits for it again once it starts again; and pods have the name servers of the machine
// that has moved to another network. A node of /dev/null stands for the device: nobody else can open
// it at that path.
func followsItsMachine(b *box) error {
	const (
		settings = `cd /etc/monopod; cp -p config.yaml config.before
printf '%s\n' 'devices: {example.com/serial: {paths: [/dev/ttyUSB*]}}' 'followResolvConf: true' >>config.yaml
cp -P /etc/resolv.conf /etc/resolv.before 2>/dev/null || touch /etc/resolv.before
echo 'nameserver 192.0.2.1' >/run/first; rm -f /etc/resolv.conf; ln -s /run/first /etc/resolv.conf
systemctl restart monopod`
		waits   = `monopod ps 2>&1 | grep -F 'OutOfexample.com/serial'`
		connect = `mknod /dev/ttyUSB0 c 1 3`
		uses    = `monopod exec modem -- sh -c 'echo AT >/dev/ttyUSB0 && test -c /dev/ttyUSB0'
monopod describe node | grep -F /dev/ttyUSB0 | grep -F modem`
		others = `! monopod exec plain -- sh -c 'mknod /tmp/tty c 188 0 && echo AT >/tmp/tty'`
		unplug = `pgrep -f '^sh -c trap' | sort >/run/before; rm /dev/ttyUSB0; sleep 5
pgrep -f '^sh -c trap' | sort | cmp - /run/before`
		again = `monopod ps 2>&1 | grep -F 'modem' | grep -F 'example.com/serial'`
		first = `monopod exec plain -- cat /etc/resolv.conf | grep -F 192.0.2.1`
		moves = `echo 'nameserver 192.0.2.2' >/run/second; ln -s /run/second /run/link; mv -T /run/link /etc/resolv.conf`
		then  = `monopod exec plain -- cat /etc/resolv.conf | grep -F 192.0.2.2`
		edits = `echo 'nameserver 192.0.2.3' >/run/second`
		last  = `monopod exec plain -- cat /etc/resolv.conf | grep -F 192.0.2.3`
		back  = `rm -f /dev/ttyUSB0 /etc/monopod/manifests/*; mv /etc/resolv.before /etc/resolv.conf
mv /etc/monopod/config.before /etc/monopod/config.yaml; systemctl restart monopod`
	)
	for _, step := range []func() error{
		func() error { return b.all(settings).err },
		func() error { return b.pod("plain", "dnsPolicy: Default", "") },
		func() error { return b.pod("modem", "", "resources: {limits: {example.com/serial: 1}}") },
		func() error { return b.until(waits) },
		func() error { return b.all(connect).err },
		func() error { return b.says(running(2)) },
		func() error { return b.until(uses) },
		func() error { return b.all(others, unplug).err },
		func() error { return b.all("monopod restart modem").err },
		func() error { return b.until(again) },
		func() error { return b.all(connect).err },
		func() error { return b.until(uses) },
		func() error { return b.until(first) },
		func() error { return b.all(moves).err },
		func() error { return b.until(then) },
		func() error { return b.all(edits).err },
		func() error { return b.until(last) },
		func() error { return b.all(back).err },
		b.noPods,
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}
