package managed

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"monopod/agent/disk"
)

// Remove ends the runtime and removes all that is left of it: processes of containers, mounts,
// network and files. Pods should have been removed before, for their networks' sake.
func (r *Runtime) Remove(ctx context.Context) error {
	var err error
	if r.process == nil {
		r.process, err = r.takeOver(ctx)
	}
	if err != nil {
		return fmt.Errorf("remove %s: %w", r.Name(), err)
	}
	if r.process != nil {
		r.process.stop(stopPatience)
		r.process = nil
	}
	err = r.endShims()
	err = errors.Join(err, unmountBelow(r.dir), removeLink(bridge(r.dir)))
	notes, _ := filepath.Glob("/var/lib/cni/results/" + bridge(r.dir) + "-*") // libcni's
	for _, path := range notes {
		err = errors.Join(err, os.Remove(path))
	}
	if err != nil {
		return fmt.Errorf("remove %s: %w", r.Name(), err)
	}
	return disk.RemoveAll(ctx, r.dir)
}

// shimPatience is how long the processes of containers may take to end after SIGKILL.
const shimPatience = 20 * time.Second

// endShims kills what is left of containers: their processes are the children of a shim, or become
// so, and it is told by the socket that it has been given.
func (r *Runtime) endShims() error {
	for late := time.Now().Add(shimPatience); ; time.Sleep(20 * time.Millisecond) {
		all := processes()
		shims := all.shimsOf(r.socket())
		if len(shims) == 0 {
			return nil
		}
		if time.Now().After(late) {
			return fmt.Errorf("processes of containers do not end: %v", shims)
		}
		for _, shim := range shims {
			below := all.below(shim.pid)
			for _, p := range below {
				p.kill()
			}
			if len(below) == 0 {
				shim.kill()
			}
		}
	}
}

// peer is a process of the machine.
type peer struct {
	pid, parent int
	started     uint64
	args        [][]byte
	uid         uint32
}

type peers []peer

// processes returns all processes.
func processes() (all peers) {
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		stat, err1 := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		args, err2 := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		p, err3 := parsePeer(pid, string(stat), args)
		var owner unix.Stat_t
		err4 := unix.Stat(fmt.Sprintf("/proc/%d", pid), &owner)
		p.uid = owner.Uid
		if errors.Join(err1, err2, err3, err4) == nil {
			all = append(all, p)
		}
	}
	return all
}

func parsePeer(pid int, stat string, args []byte) (peer, error) {
	started, err := startTime(stat)
	if err != nil {
		return peer{}, err
	}
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:]) // state, parent, ...
	parent, err := strconv.Atoi(fields[1])
	return peer{pid: pid, parent: parent, started: started, args: bytes.Split(bytes.TrimSuffix(args, []byte{0}), []byte{0})}, err
}

// shimsOf returns the shims of the containerd with that socket, which are root's.
func (all peers) shimsOf(socket string) (out peers) {
	for _, p := range all {
		k := slices.IndexFunc(p.args, func(a []byte) bool { return string(a) == "-address" })
		if p.uid == 0 && strings.HasPrefix(filepath.Base(string(p.args[0])), "containerd-shim") && k >= 0 && k+1 < len(p.args) && string(p.args[k+1]) == socket {
			out = append(out, p)
		}
	}
	return out
}

// below returns the descendants of a process.
func (all peers) below(pid int) (out peers) {
	for _, p := range all {
		if p.parent == pid {
			out = append(append(out, p), all.below(p.pid)...)
		}
	}
	return out
}

// kill kills the process, and no later one with its pid.
func (p peer) kill() {
	fd, err := unix.PidfdOpen(p.pid, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	if now, err := identify(p.pid); err == nil && now.Started == p.started {
		_ = unix.PidfdSendSignal(fd, syscall.SIGKILL, nil, 0)
	}
}

// unmountBelow unmounts what is mounted below dir, the last mounts first.
func unmountBelow(dir string) (err error) {
	all := mounts()
	for _, m := range slices.Backward(all) {
		if strings.HasPrefix(m.point, dir+"/") {
			if e := unix.Unmount(m.point, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); e != nil {
				err = errors.Join(err, fmt.Errorf("unmount %s: %w", m.point, e))
			}
		}
	}
	return err
}

// removeLink removes a network interface, if it is there.
func removeLink(name string) error {
	i, err := net.InterfaceByName(name)
	if err != nil {
		return nil
	}
	s, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return fmt.Errorf("remove interface %s: %w", name, err)
	}
	defer unix.Close(s)
	if err := unix.Sendto(s, linkRemoval(i.Index), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return fmt.Errorf("remove interface %s: %w", name, err)
	}
	answer := make([]byte, 4096)
	n, _, err := unix.Recvfrom(s, answer, 0)
	if err == nil && n >= unix.NLMSG_HDRLEN+4 { // a message of the type NLMSG_ERROR, 0 for success
		if errno := -int32(binary.NativeEndian.Uint32(answer[unix.NLMSG_HDRLEN:])); errno != 0 {
			err = syscall.Errno(errno)
		}
	}
	if err != nil {
		return fmt.Errorf("remove interface %s: %w", name, err)
	}
	return nil
}

// linkRemoval is the request, see rtnetlink(7): a nlmsghdr and an ifinfomsg.
func linkRemoval(index int) []byte {
	b := binary.NativeEndian.AppendUint32(nil, unix.NLMSG_HDRLEN+unix.SizeofIfInfomsg)
	b = binary.NativeEndian.AppendUint16(b, unix.RTM_DELLINK)
	b = binary.NativeEndian.AppendUint16(b, unix.NLM_F_REQUEST|unix.NLM_F_ACK)
	b = append(b, make([]byte, 8+4)...) // number, sender; family and type
	b = binary.NativeEndian.AppendUint32(b, uint32(index))
	return append(b, make([]byte, 8)...) // flags
}
