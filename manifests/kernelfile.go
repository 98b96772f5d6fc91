package manifests

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"monopod/manifests/decode"
)

// kernelFileSystems are those whose files the kernel makes as they are read, by their f_type
// (linux/magic.h and the file systems' own): regular ones may never end, wait, or do something.
var kernelFileSystems = map[int64]string{
	unix.PROC_SUPER_MAGIC: "proc", unix.SYSFS_MAGIC: "sysfs", unix.CGROUP_SUPER_MAGIC: "cgroup", unix.CGROUP2_SUPER_MAGIC: "cgroup2",
	unix.DEBUGFS_MAGIC: "debugfs", unix.TRACEFS_MAGIC: "tracefs", unix.SECURITYFS_MAGIC: "securityfs", unix.SELINUX_MAGIC: "selinuxfs",
	unix.SMACK_MAGIC: "smackfs", unix.BPF_FS_MAGIC: "bpf", unix.PSTOREFS_MAGIC: "pstore", unix.EFIVARFS_MAGIC: "efivarfs",
	unix.BINFMTFS_MAGIC: "binfmt_misc", unix.RDTGROUP_SUPER_MAGIC: "resctrl", unix.DEVPTS_SUPER_MAGIC: "devpts", unix.NSFS_MAGIC: "nsfs",
	unix.PID_FS_MAGIC: "pidfs", unix.XENFS_SUPER_MAGIC: "xenfs", unix.OPENPROM_SUPER_MAGIC: "openpromfs", unix.USBDEVICE_SUPER_MAGIC: "usbfs",
	unix.SECRETMEM_MAGIC: "secretmem", unix.DMA_BUF_MAGIC: "dmabuf",
	0x62656570: "configfs", 0x65735543: "fusectl", 0x19800202: "mqueue", 0x6e667364: "nfsd", 0x67596969: "rpc_pipefs",
}

// errKernelFile says that a path leads to a file of the kernel.
var errKernelFile = errors.New("a file of the kernel")

// openRegular opens a file that is regular, not too large and not one of the kernel's. Nothing
// else is opened: that alone may do something, as with a watchdog.
func openRegular(path string) (*os.File, os.FileInfo, error) {
	at, err := unixOpen(path, unix.O_PATH)
	if err != nil {
		return nil, nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(at)
	if err := mayBeRead(at); err != nil {
		return nil, nil, &fs.PathError{Op: "read", Path: path, Err: err}
	}
	fd, err := unixOpen(fmt.Sprintf("/proc/self/fd/%d", at), unix.O_RDONLY|unix.O_NONBLOCK)
	if errors.Is(err, fs.ErrNotExist) { // no /proc is mounted, as where manifests are only checked
		fd, err = unixOpen(path, unix.O_RDONLY|unix.O_NONBLOCK)
	}
	if err != nil {
		return nil, nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	f := os.NewFile(uintptr(fd), path)
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

// unixOpen is unix.Open, again after a signal.
func unixOpen(path string, flags int) (int, error) {
	for {
		fd, err := unix.Open(path, flags|unix.O_CLOEXEC, 0)
		if err != unix.EINTR {
			return fd, err
		}
	}
}

// mayBeRead returns why an open file is not to be read.
func mayBeRead(fd int) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return errIrregular
	}
	var on unix.Statfs_t
	if err := unix.Fstatfs(fd, &on); err != nil {
		return err
	}
	if name, isKernels := kernelFileSystems[int64(on.Type)]; isKernels {
		return fmt.Errorf("%w (%s)", errKernelFile, name)
	}
	if st.Size >= decode.MaxSize {
		return errLarge
	}
	return nil
}
