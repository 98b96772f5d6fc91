package volume

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/types"
)

// A claim whose disk is not mounted must not be an empty directory to its pods.
func TestAClaimThatIsMissingIsNotMadeAgain(t *testing.T) {
	root := testRoot(t)
	dir, disk := ClaimDir(root, data), filepath.Join(t.TempDir(), "disk")
	pod := claimPod("u1", 4242)
	setUpPod(t, root, pod)
	must(t, os.Rename(filepath.Join(root, "volumes"), disk))
	for _, look := range []func() error{
		func() error { _, err := SetUp(t.Context(), root, pod, Input{}); return err },
		func() error { return LookAtShared(root, pod) }, // before anything stops for a version that needs it
		func() error { _, err := SetUp(t.Context(), root, pod, Input{}); return err },
	} {
		err := look()
		var missing *MissingClaimError
		if !errors.As(err, &missing) || missing.Error() != "the directory "+dir+" of the PersistentVolumeClaim default/data is missing, and was there before: "+
			"mount its disk, or use an empty directory with: monopod volume make default/data --root "+root {
			t.Fatal(err)
		}
	}
	if _, err := os.Lstat(filepath.Join(root, "volumes")); err == nil {
		t.Error("the folder of the claims was made again")
	}
	must(t, os.Rename(disk, filepath.Join(root, "volumes")))
	setUpPod(t, root, pod)

	must(t, os.RemoveAll(filepath.Join(root, "volumes")))
	must(t, MakeClaim(root, data))
	if m := mode(t, dir).Perm(); m != 0o777 {
		t.Errorf("made by hand with mode %v", m)
	}
	setUpPod(t, root, pod) // to which it is new
	if got := groupOf(t, dir); got != 4242 {
		t.Errorf("made by hand, it is of %d", got)
	}
	if err := MakeClaim(root, data); err == nil || err.Error() != "volume default/data is there already: "+dir {
		t.Error(err)
	}
}

// A disk that is mounted on the claim itself leaves an empty directory when it is not.
func TestAClaimThatWasOnADiskIsNotTheDirectoryBelow(t *testing.T) {
	root := testRoot(t)
	dir := ClaimDir(root, data)
	setUpPod(t, root, claimPod("u1", 4242))
	must(t, unix.Mount("tmpfs", dir, "tmpfs", 0, "")) // later, which is no reason to wait
	setUpPod(t, root, claimPod("u2", 4242))
	must(t, unmount(dir))
	_, err := SetUp(t.Context(), root, claimPod("u3", 4242), Input{})
	var missing *MissingClaimError
	if !errors.As(err, &missing) || missing.Error() != "the directory "+dir+" of the PersistentVolumeClaim default/data was on a disk that is not mounted now: "+
		"mount it, or use the directory as it is with: monopod volume make default/data --root "+root {
		t.Fatal(err)
	}
	must(t, unix.Mount("tmpfs", dir, "tmpfs", 0, ""))
	setUpPod(t, root, claimPod("u3", 4242))
	must(t, unmount(dir))
	must(t, os.WriteFile(filepath.Join(dir, "file"), []byte("kept"), 0o600))
	must(t, MakeClaim(root, data))
	setUpPod(t, root, claimPod("u4", 4242))
	if b, err := os.ReadFile(filepath.Join(dir, "file")); string(b) != "kept" {
		t.Errorf("%q, %v", b, err)
	}
}

// A claim that is made while the disk of all claims is not mounted would be hidden once it is.
func TestANewClaimWaitsForTheDiskOfTheClaims(t *testing.T) {
	root, claims := testRoot(t), t.TempDir()
	folder := filepath.Join(root, claimsDir)
	mount := func() { must(t, unix.Mount(claims, folder, "", unix.MS_BIND, "")) }
	must(t, unix.Mount("tmpfs", claims, "tmpfs", 0, ""))
	t.Cleanup(func() { must(t, unmount(claims)) })
	must(t, os.Mkdir(folder, 0o750))
	mount()
	setUpPod(t, root, claimPod("u1", 4242))
	must(t, unmount(folder))
	pod := testPod(claimVolume("new", false))
	pod.UID = "u2"
	want := "the disk of " + folder + " is not mounted, which has the PersistentVolumeClaim default/data: mount it, or make default/new on this disk with: monopod volume make default/new --root " + root
	for _, look := range []func() error{
		func() error { return LookAtShared(root, pod) },
		func() error { return SetUpOwn(t.Context(), root, pod, Input{}) },
		func() error { _, err := SetUp(t.Context(), root, pod, Input{}); return err },
	} {
		if err := look(); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%v", err)
		}
	}
	if left := names(t, folder); len(left) > 0 {
		t.Errorf("made where it will be hidden: %v", left)
	}
	mount()
	setUpPod(t, root, pod)
	must(t, os.RemoveAll(ClaimDir(root, data))) // by hand, of a disk that is there
	other := testPod(claimVolume("other", false))
	setUpPod(t, root, other)
	must(t, unmount(folder))
	must(t, MakeClaim(root, types.NamespacedName{Namespace: "default", Name: "by-hand"}))
	setUpPod(t, root, testPod(claimVolume("by-hand", false)))
}

// The directories that a former agent made count as made, from the first start of this one on.
func TestClaimsOfFormerAgentsCountAsMade(t *testing.T) {
	root := testRoot(t)
	other := types.NamespacedName{Namespace: "default", Name: "other"}
	for _, c := range []types.NamespacedName{data, other} {
		must(t, os.MkdirAll(ClaimDir(root, c), 0o777))
	}
	RecordFormerClaims(t.Context(), root, slog.New(slog.DiscardHandler))
	must(t, os.Remove(ClaimDir(root, data)))
	RecordFormerClaims(t.Context(), root, slog.New(slog.DiscardHandler))
	if !IsMissing(root, data) || IsMissing(root, other) {
		t.Errorf("missing: %v, the other: %v", IsMissing(root, data), IsMissing(root, other))
	}
	if all, err := Claims(root); err != nil || len(all) != 2 {
		t.Errorf("%v, %v", all, err)
	}
	if _, err := SetUp(t.Context(), root, claimPod("u1", 4242), Input{}); err == nil {
		t.Error("it was made again")
	}
	// One that is removed may come again, whether it is there or not.
	for _, c := range []types.NamespacedName{data, other} {
		if err := RemoveClaim(t.Context(), root, c, func() ([]string, error) { return []string{"default/web"}, nil }); err == nil {
			t.Errorf("%s is removed under a pod", c)
		}
		must(t, RemoveClaim(t.Context(), root, c, func() ([]string, error) { return nil, nil }))
	}
	if all, err := Claims(root); err != nil || len(all) != 0 {
		t.Errorf("%v, %v", all, err)
	}
	setUpPod(t, root, claimPod("u1", 4242))
}

// A power cut leaves the record with any content or none, and the directory before its record.
func TestARecordOfAClaimThatIsDamagedIsOne(t *testing.T) {
	root := testRoot(t)
	pod := claimPod("u1", 4242)
	setUpPod(t, root, pod)
	must(t, os.WriteFile(recordPath(root, data), []byte{0, 0}, 0o600))
	must(t, os.Remove(ClaimDir(root, data)))
	if _, err := SetUp(t.Context(), root, pod, Input{}); err == nil {
		t.Error("it was made again")
	}
	must(t, MakeClaim(root, data))
	must(t, os.Remove(recordPath(root, data)))
	setUpPod(t, root, pod)
	if was, err := readRecord(root, data); was != claimMade {
		t.Errorf("%q, %v", was, err)
	}
}

// A disk that takes no record is tried again.
func TestClaimsAreRecordedOnceTheDiskTakesIt(t *testing.T) {
	root := testRoot(t)
	must(t, os.MkdirAll(ClaimDir(root, data), 0o777))
	must(t, os.WriteFile(filepath.Join(root, recordsDir), nil, 0o600)) // in the way
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		done := make(chan struct{})
		go func() { RecordFormerClaims(t.Context(), root, slog.New(slog.NewTextHandler(&log, nil))); close(done) }()
		time.Sleep(5*recordAgain + time.Second)
		synctest.Wait()
		if n := strings.Count(log.String(), "not a directory"); n != 1 {
			t.Errorf("said %d times:\n%s", n, &log)
		}
		must(t, os.Remove(filepath.Join(root, recordsDir)))
		<-done
	})
	must(t, os.Remove(ClaimDir(root, data)))
	if !IsMissing(root, data) {
		t.Error("it would be made again")
	}
}

// A directory or a record that a killed agent did not complete goes, unless somebody makes one.
func TestClaimsThatWereNotCompletedGo(t *testing.T) {
	root := testRoot(t)
	left := []string{filepath.Join(root, claimsDir, ".new-1"), filepath.Join(root, recordsDir, ".new-2"), filepath.Join(root, recordsDir, ".tmp-3")}
	must(t, os.MkdirAll(left[0], 0o700))
	must(t, os.MkdirAll(ClaimDir(root, data), 0o777))
	must(t, os.MkdirAll(filepath.Dir(left[1]), 0o700))
	must(t, os.WriteFile(left[1], []byte("ma"), 0o600)) // of a former agent
	must(t, os.WriteFile(left[2], []byte("ma"), 0o600))
	there := func() (n int) {
		for _, path := range left {
			if _, err := os.Lstat(path); err == nil {
				n++
			}
		}
		return n
	}
	unlock, err := lockClaims(root, unix.LOCK_SH)
	must(t, err)
	must(t, RecordClaims(root))
	if there() != 3 {
		t.Error("what somebody makes is gone")
	}
	unlock()
	must(t, RecordClaims(root))
	if there() != 0 || IsMissing(root, data) {
		t.Errorf("%d are there, and the claim is missing: %v", there(), IsMissing(root, data))
	}
}

// What is typed to make a claim by hand is for the agent that misses it, whatever its root dir.
func TestTheCommandThatMakesAClaimNamesTheRootDir(t *testing.T) {
	here, err := os.Getwd()
	must(t, err)
	for root, want := range map[string]string{
		"/var/lib/monopod": "monopod volume make default/data --root /var/lib/monopod",
		"..":               "monopod volume make default/data --root " + filepath.Dir(here),
		"/srv/edge one":    "monopod volume make default/data --root '/srv/edge one'",
	} {
		if got := MakeCommand(root, data); got != want {
			t.Errorf("%s: it says %s, want %s", root, got, want)
		}
	}
}
