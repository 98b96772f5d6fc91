package manifests

import (
	"fmt"
	"os"
	"reflect"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"monopod/manifests/decode"
	"monopod/manifests/poduid"
	"monopod/manifests/shell"
)

// Record is what a Source saves for the next one, so that that does not mistake another folder for
// the one that its known pods came from.
type Record struct {
	Folder *Folder `json:"folder,omitempty"` // the manifests were read from; nil: none yet
	// Forgotten has, by namespace/name, the hash of each pod that was forgotten; objects, such as
	// "ConfigMap default/app", have an empty hash.
	Forgotten map[string]poduid.ContentHash `json:"forgotten,omitempty"`
	// Moved has, by namespace/name, the file or URL that gave a pod last, if another gave it first:
	// the last good version names the first one.
	Moved map[string]string `json:"moved,omitempty"`
	// Unclear has, by path, the contents that cannot be read completely or have an error; nil: not
	// recorded.
	Unclear map[string]Unclear `json:"unclear"`
	// Came has, by the names of pods and objects, the turn in which they were first given, if that is
	// not before the oldest content in Unclear was seen; nil: there are none. Without it, as after an
	// older monopod, more pods may be hidden by such a content, and so stay.
	Came map[string]int `json:"came,omitempty"`
	// Masks are the names of the files of other folders that the folder masks, sorted.
	Masks []string `json:"masks,omitempty"`

	// Of several folders, these have the records of each by its path. Then the record around them
	// has Moved, and Given: by the names of pods, and of objects as in Forgotten, the paths of the
	// folders of those that several give, the lowest first, or that one did that was not read since.
	Folders map[string]Record   `json:"folders,omitempty"`
	Given   map[string][]string `json:"given,omitempty"`
}

// Folder identifies a directory, also across reboots.
type Folder struct {
	Path   string `json:"path"`
	FSType int64  `json:"fsType"`         // statfs(2): f_type
	FSID   string `json:"fsid,omitempty"` // statfs(2): f_fsid, 16 hex digits; "": this file system has none
	Inode  uint64 `json:"inode"`
	// Born is the time of birth in ns since 1970: once a directory is removed, another may get its
	// inode number; 0: unknown.
	Born int64 `json:"born,omitempty"`
	// Device and Boot replace a missing FSID. The kernel numbers devices in the order of their
	// discovery, so a number is valid during one boot only.
	Device uint64 `json:"device"`
	Boot   string `json:"boot,omitempty"`
	// Owner is the uid of the owner; "": not recorded.
	Owner string `json:"owner,omitempty"`
}

// folderOf returns the identity of an open directory.
func folderOf(f *os.File, boot string) (Folder, error) {
	info, err := f.Stat()
	if err != nil {
		return Folder{}, err
	}
	var fs unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &fs); err != nil {
		return Folder{}, &os.PathError{Op: "statfs", Path: f.Name(), Err: err}
	}
	d := Folder{Path: f.Name(), FSType: int64(fs.Type), Boot: boot}
	if id := fs.Fsid.Val; id != [2]int32{} {
		d.FSID = fmt.Sprintf("%08x%08x", uint32(id[0]), uint32(id[1]))
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		d.Device, d.Inode, d.Owner = uint64(st.Dev), st.Ino, strconv.FormatUint(uint64(st.Uid), 10)
	}
	var more unix.Statx_t
	err = unix.Statx(int(f.Fd()), "", unix.AT_EMPTY_PATH, unix.STATX_BTIME, &more)
	if err == nil && more.Mask&unix.STATX_BTIME != 0 {
		d.Born = more.Btime.Sec*int64(time.Second) + int64(more.Btime.Nsec)
	}
	return d, nil
}

// difference is how two directories differ.
type difference int

const (
	sameFolder difference = iota
	otherFolder
	otherFileSystem
)

func (d Folder) differs(from Folder) difference {
	switch {
	case d.FSType != from.FSType || d.FSID != from.FSID:
		return otherFileSystem
	case d.FSID == "" && d.Boot != from.Boot: // nothing tells
		return otherFolder
	case d.FSID == "" && d.Device != from.Device:
		return otherFileSystem
	case d.Inode != from.Inode || d.Born != 0 && from.Born != 0 && d.Born != from.Born:
		return otherFolder
	}
	return sameFolder
}

// fileSystems are the names of common file systems by their f_type (linux/magic.h).
var fileSystems = map[int64]string{
	unix.EXT4_SUPER_MAGIC: "ext4", unix.XFS_SUPER_MAGIC: "xfs", unix.BTRFS_SUPER_MAGIC: "btrfs", unix.F2FS_SUPER_MAGIC: "f2fs",
	unix.TMPFS_MAGIC: "tmpfs", unix.RAMFS_MAGIC: "ramfs", unix.OVERLAYFS_SUPER_MAGIC: "overlay", unix.SQUASHFS_MAGIC: "squashfs",
	unix.NFS_SUPER_MAGIC: "nfs", unix.SMB2_SUPER_MAGIC: "smb", unix.V9FS_MAGIC: "9p", unix.FUSE_SUPER_MAGIC: "fuse",
	unix.MSDOS_SUPER_MAGIC: "vfat", unix.EROFS_SUPER_MAGIC_V1: "erofs", 0x2fc12fc1: "zfs",
}

func fileSystem(kind int64) string {
	if name := fileSystems[kind]; name != "" {
		return name
	}
	return fmt.Sprintf("type %#x", kind)
}

// doubt returns why pods that the folder does not give are not proven gone; "": they are, once they
// have been missing for long enough. A disk that was not mounted leaves an empty or an old folder
// in its place.
func (s *Source) doubt() string {
	if s.here == nil || s.ofFiles() == "" && !s.masksAny() {
		return ""
	}
	before := s.record.Folder
	if before == nil {
		if s.hasManifest() {
			return ""
		}
		return "holds no valid manifest, and nothing tells that what is known came from it: " + keepRunning + "put their manifests there"
	}
	if s.isTaken() {
		return fmt.Sprintf("belongs to user %s, and to user %s before: %schown root %s", s.here.Owner, before.Owner, keepRunning, shell.Word(s.here.Path))
	}
	switch s.here.differs(*before) {
	case otherFileSystem:
		was, is := fileSystem(before.FSType), fileSystem(s.here.FSType)
		if was == is {
			is = "another " + is
		}
		if before.Path != s.here.Path {
			was += " at " + before.Path
		}
		return fmt.Sprintf("is another file system than before (was %s, is %s): %smount it again", was, is, keepRunning)
	case otherFolder:
		if !s.hasManifest() {
			return "is another folder than before, without a valid manifest: " + keepRunning + "put their manifests there"
		}
	}
	return ""
}

// isTaken reports whether the folder now belongs to another user than before, who is neither root
// nor the agent's own, while the settings allow only those to write manifests.
func (s *Source) isTaken() bool {
	before := s.record.Folder
	if !s.Strict || s.here == nil || before == nil || before.Owner == "" || s.here.Owner == before.Owner {
		return false
	}
	owner, err := strconv.ParseUint(s.here.Owner, 10, 32)
	return err == nil && !isOwn(uint32(owner))
}

const (
	keepRunning    = "the pods of its files keep running, its objects and masks stay; "
	orAcceptByHand = ", or accept the removal with: monopod forget POD, configmap/NAME or secret/NAME"
)

// ofFiles returns the first file, by name, that gave a pod or an object; "": none did.
func (s *Source) ofFiles() string {
	first := ""
	note := func(file string) {
		if !IsURL(file) && (first == "" || file < first) {
			first = file
		}
	}
	for _, p := range s.current {
		note(p.File)
	}
	for _, o := range s.objects {
		note(o.File)
	}
	return first
}

func (s *Source) hasPodsOfFiles() bool {
	for _, p := range s.current {
		if !IsURL(p.File) {
			return true
		}
	}
	return false
}

// hasManifest reports whether the folder holds a valid manifest. Where pods are known of files, it
// has to be one of a pod; a mask is one where only masks are known.
func (s *Source) hasManifest() bool {
	ofPods, ofFiles := s.hasPodsOfFiles(), s.ofFiles() != ""
	for path, f := range s.files {
		if !IsURL(path) && (len(f.Pods) > 0 || !ofPods && len(f.Objects) > 0 || !ofFiles && f.isMask) {
			return true
		}
	}
	return false
}

// accept records this folder as the one that pods come from, unless it may be another folder
// (doubt) and lacks what is kept for that reason, or another user took it.
func (s *Source) accept(doubt string, kept bool) {
	s.doubted = nil
	switch {
	case len(s.folder) > 0 || s.here == nil:
	case doubt != "" && kept:
		s.doubted = []decode.Problem{{File: s.Dir, Message: doubt + orAcceptByHand}}
	case s.isTaken():
	case !s.filled.IsZero(): // so that the next Source knows, too, that it was recreated
	default:
		here := *s.here
		s.record.Folder = &here
	}
}

// moved reports whether the path leads to another folder than the one that was read last. Mounts
// and changed links cause no events, so it is checked.
func (s *Source) moved() bool {
	if s.here == nil {
		return false
	}
	moved, err := ask(s.asking, &s.asking.moved, s.here.Path, s.here.moved)
	return moved || err != nil
}

// moved reports whether the folder's path leads to something else now.
func (d *Folder) moved() bool {
	info, err := os.Stat(d.Path)
	if err != nil {
		return true
	}
	id := signatureOf(info)
	return id.dev != d.Device || id.ino != d.Inode
}

// remember saves the record if it has changed. A failed save is tried again; until it succeeds, the
// next Source gets the record that was saved last.
func (s *Source) remember(now time.Time) {
	if now.Before(s.saveAt) || reflect.DeepEqual(s.record, s.saved) {
		return
	}
	err := s.save(s.record)
	if err == nil {
		s.saveAt = time.Time{}
		return
	}
	if s.saveAt.IsZero() {
		s.Log.Error("the identity of the manifest folder cannot be saved; after a restart monopod uses the previous one", "err", err)
	}
	s.saveAt = now.Add(retryFolder)
}

func (s *Source) save(r Record) error {
	if s.Save != nil {
		if err := s.Save(r); err != nil {
			return err
		}
	}
	s.saved = r.clone()
	return nil
}
