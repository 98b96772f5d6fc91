package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/types"

	"monopod/agent/disk"
	"monopod/manifests/shell"
)

// recordsDir is the folder below the root dir with a file for each claim that was created, so that
// a claim whose disk is not mounted differs from a new one. It is not in the folder of the claims,
// which may be on another disk. A directory without a record counts as created. Former agents do
// not know the records: they create a missing directory again, and leave the record of a claim that
// they remove; pods with that claim then wait until the owner creates it by hand.
const recordsDir = "claims"

// claimRecord is the recorded state of a claim.
type claimRecord string

const (
	unrecorded   claimRecord = ""
	claimUnknown claimRecord = "unknown" // it is there, and a former agent made it; never recorded
	claimMade    claimRecord = "made"    // on the disk of the root dir
	claimOnDisk  claimRecord = "mounted" // on another disk
	claimByHand  claimRecord = "by hand" // and no pod has been set up with it since
)

// MissingClaimError means that a claim that was created before is missing. Only MakeClaim creates
// it again.
type MissingClaimError struct {
	Claim types.NamespacedName
	Root  string // the root dir of the claim
	Other bool   // a directory exists, but not on the disk that was mounted
}

func (e *MissingClaimError) Error() string {
	dir, byHand := ClaimDir(e.Root, e.Claim), MakeCommand(e.Root, e.Claim)
	if e.Other {
		return fmt.Sprintf("the directory %s of the PersistentVolumeClaim %s was on a disk that is not mounted now"+
			": mount it, or use the directory as it is with: %s", dir, e.Claim, byHand)
	}
	return fmt.Sprintf("the directory %s of the PersistentVolumeClaim %s is missing, and was there before"+
		": mount its disk, or use an empty directory with: %s", dir, e.Claim, byHand)
}

// MakeCommand returns the command that creates a claim by hand. It contains the root dir, which the
// reader need not know then.
func MakeCommand(root string, c types.NamespacedName) string {
	abs, err := filepath.Abs(root) // it is typed in another directory
	if err == nil {
		root = abs
	}
	return fmt.Sprintf("monopod volume make %s --root %s", c, shell.Word(root))
}

func recordPath(root string, c types.NamespacedName) string {
	return filepath.Join(root, recordsDir, claimFile(c))
}

// readRecord returns the record of a claim. A record that a power cut damaged still counts as one.
func readRecord(root string, c types.NamespacedName) (claimRecord, error) {
	b, err := os.ReadFile(recordPath(root, c))
	if errors.Is(err, fs.ErrNotExist) {
		return unrecorded, nil
	}
	if err != nil {
		return unrecorded, err
	}
	switch r := claimRecord(b); r {
	case claimOnDisk, claimByHand:
		return r, nil
	}
	return claimMade, nil
}

// writeRecord records a claim durably. The claim's directory must exist durably: otherwise a power
// cut could leave a record of a directory that never existed.
func writeRecord(root string, c types.NamespacedName, r claimRecord) error {
	if err := makeDirs(root, recordsDir); err != nil {
		return err
	}
	if err := disk.WriteFile(recordPath(root, c), []byte(r), 0o600); err != nil {
		return err
	}
	return disk.SyncDir(root)
}

// removeRecord removes the record of a claim, durably.
func removeRecord(root string, c types.NamespacedName) error {
	err := os.Remove(recordPath(root, c))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return errors.Join(err, disk.SyncDir(filepath.Join(root, recordsDir)))
}

// recorded returns the record to write for an existing claim.
func recorded(root string, c types.NamespacedName) (claimRecord, error) {
	other, err := onOtherDisk(root, ClaimDir(root, c))
	if other {
		return claimOnDisk, err
	}
	return claimMade, err
}

// onOtherDisk reports whether dir is on another disk than the root dir.
func onOtherDisk(root, dir string) (bool, error) {
	var top, at unix.Stat_t
	if err := unix.Stat(root, &top); err != nil {
		return false, &fs.PathError{Op: "stat", Path: root, Err: err}
	}
	if err := unix.Lstat(dir, &at); err != nil {
		return false, &fs.PathError{Op: "stat", Path: dir, Err: err}
	}
	return at.Dev != top.Dev, nil
}

// checkClaim returns the record of a claim, and a *MissingClaimError if it was created and is
// missing. For one that never existed it returns another error if it cannot be created now.
func checkClaim(root string, c types.NamespacedName) (claimRecord, error) {
	was, err := readRecord(root, c)
	if err != nil {
		return was, err
	}
	if was == unrecorded {
		return was, checkNewClaim(root, c)
	}
	other, err := onOtherDisk(root, ClaimDir(root, c))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return was, &MissingClaimError{Claim: c, Root: root}
	case err == nil && was == claimOnDisk && !other:
		return was, &MissingClaimError{Claim: c, Root: root, Other: true}
	}
	return was, err
}

// checkNewClaim returns an error if a claim never existed and the disk of the claims' folder is not
// mounted: a directory that is made now would be hidden once it is.
func checkNewClaim(root string, c types.NamespacedName) error {
	if _, err := os.Lstat(ClaimDir(root, c)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	folder := filepath.Join(root, claimsDir)
	other, err := onOtherDisk(root, folder)
	if other || err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	all, err := Claims(root)
	if err != nil {
		return err
	}
	for _, has := range all {
		if isGoneWithFolder(root, has) {
			return fmt.Errorf("the disk of %s is not mounted, which has the PersistentVolumeClaim %s: mount it, or make %s on this disk with: %s",
				folder, has, c, MakeCommand(root, c))
		}
	}
	return nil
}

// isGoneWithFolder reports whether a claim was on another disk than the root dir, and has no
// directory now: a disk that is mounted on the claim itself leaves one.
func isGoneWithFolder(root string, c types.NamespacedName) bool {
	was, err := readRecord(root, c)
	if err != nil || was != claimOnDisk {
		return false
	}
	_, err = os.Lstat(ClaimDir(root, c))
	return errors.Is(err, fs.ErrNotExist)
}

// unfinished is the prefix of directories that were incomplete when an agent died, and of records
// of former agents.
const unfinished = ".new-"

// removeUnfinished removes those, unless a claim is being created right now.
func removeUnfinished(root string) error {
	look := func() (left []string) {
		for _, pattern := range []string{claimsDir + "/" + unfinished, recordsDir + "/" + unfinished, recordsDir + "/" + disk.TempPrefix} {
			all, _ := filepath.Glob(filepath.Join(root, pattern+"*"))
			left = append(left, all...)
		}
		return left
	}
	if len(look()) == 0 {
		return nil
	}
	unlock, err := lockClaims(root, unix.LOCK_EX)
	if errors.Is(err, errRemoving) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unlock()
	var failed []error
	for _, path := range look() {
		failed = append(failed, os.Remove(path)) // a file, or an empty directory
	}
	return errors.Join(failed...)
}

// RecordClaims records all claims that have a directory and no record, as former agents created
// them. It removes what former agents left incomplete.
func RecordClaims(root string) error {
	all, err := Claims(root)
	if err != nil {
		return err
	}
	failed := []error{removeUnfinished(root)}
	for _, c := range all {
		if was, err := readRecord(root, c); err != nil || was != unrecorded || !isDir(ClaimDir(root, c)) {
			failed = append(failed, err)
			continue
		}
		now, err := recorded(root, c)
		if err == nil {
			err = writeRecord(root, c, now)
		}
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}

// recordAgain is the delay of RecordFormerClaims after a failure.
const recordAgain = time.Minute

// RecordFormerClaims calls RecordClaims until it succeeds or ctx ends, and deletes then what killed
// removals of claims left. It does not wait for a disk that does not answer.
func RecordFormerClaims(ctx context.Context, root string, log *slog.Logger) {
	for said := ""; ; {
		recorded := make(chan error, 1)
		go func() {
			err := RecordClaims(root)
			if err == nil {
				_ = deleteRetired(ctx, root) // what stays goes with the next removal of a claim
			}
			recorded <- err
		}()
		var err error
		select {
		case err = <-recorded:
		case <-ctx.Done():
		}
		if ctx.Err() != nil || err == nil {
			return
		}
		if err.Error() != said {
			said = err.Error()
			log.Warn("the directories of PersistentVolumeClaims cannot be recorded: one whose disk is not mounted after a reboot would be made again, empty; trying again", "err", err)
		}
		select {
		case <-time.After(recordAgain):
		case <-ctx.Done():
			return
		}
	}
}

func isDir(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.IsDir()
}

// IsMissing reports whether a claim was created and is missing.
func IsMissing(root string, c types.NamespacedName) bool {
	var missing *MissingClaimError
	_, err := checkClaim(root, c)
	return errors.As(err, &missing)
}

// MakeClaim creates the directory of a claim, empty, or accepts an existing one in place of a disk
// that is not mounted. Any process may call it.
func MakeClaim(root string, c types.NamespacedName) error {
	if err := checkName("volume", claimFile(c)); err != nil {
		return err
	}
	if err := makeDirs(root, claimsDir); err != nil {
		return err
	}
	unlock, err := lockClaims(root, unix.LOCK_SH)
	if err != nil {
		return fmt.Errorf("volume %s: %w", c, err)
	}
	defer unlock()
	if _, err := os.Lstat(ClaimDir(root, c)); err == nil && !IsMissing(root, c) {
		return fmt.Errorf("volume %s is there already: %s", c, ClaimDir(root, c))
	}
	if _, err := makeClaim(ClaimDir(root, c)); err != nil {
		return err
	}
	if err := disk.SyncDir(filepath.Join(root, claimsDir)); err != nil {
		return err
	}
	return writeRecord(root, c, claimByHand)
}
