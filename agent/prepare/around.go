package prepare

import (
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/backoff"
	"monopod/agent/devices"
	"monopod/agent/message"
	"monopod/agent/panics"
	"monopod/agent/podspec"
	"monopod/agent/volume"
)

// trouble is the problem of a part of the preparation, which is tried again by itself.
type trouble struct {
	text  string // "": nothing
	count int    // in a row
	retry time.Time
}

func (x *trouble) lasts() bool { return x.text != "" }
func (x *trouble) isDue() bool { return !time.Now().Before(x.retry) }

// note records the result of a try.
func (x *trouble) note(err error) {
	if err == nil {
		*x = trouble{}
		return
	}
	x.count++
	x.text, x.retry = err.Error(), time.Now().Add(backoff.After(x.count))
}

// hangsAfter is how long a check of the machine may take: a file system may never answer.
const hangsAfter = 10 * time.Second

// around is what a version has of the machine: what it mounts of it, and of volumes that outlive
// pods, and the devices of the containers that are to start. The checks run one at a time, in a
// goroutine that is not waited for.
type around struct {
	root    string
	pod     *v1.Pod
	starts  *v1.Pod // the part of it that starts
	devices *devices.Keeper

	known trouble
	looks chan error // result of the check that runs; nil: none does
	since time.Time
}

// look returns what the version lacks, "": nothing, and when to look again; zero: not before
// something wakes the task.
func (a *around) look() (text string, again time.Time) {
	if a.looks == nil && a.known.isDue() {
		a.start()
	}
	if a.looks == nil {
		return a.known.text, a.known.retry
	}
	wait := time.NewTimer(max(time.Until(a.since.Add(hangsAfter)), time.Millisecond))
	defer wait.Stop()
	select {
	case err := <-a.looks:
		a.looks = nil
		a.known.note(err)
	case <-wait.C:
		return "what it mounts of the machine does not answer since " + string(message.Time(a.since)), time.Now().Add(hangsAfter)
	}
	return a.known.text, a.known.retry
}

func (a *around) start() {
	looks := make(chan error, 1)
	a.looks, a.since = looks, time.Now()
	go func() {
		var err error
		fault := panics.Contain(func() { err = a.lookAt() })
		if fault != nil {
			err = fault
		}
		looks <- err
	}()
}

func (a *around) lookAt() error {
	err := volume.LookAtShared(a.root, a.pod)
	if err != nil {
		return err
	}
	return a.devices.LookAt(a.pod, podspec.AllContainers(a.starts))
}

// retry makes the next look check at once what failed.
func (a *around) retry() { a.known.retry = time.Time{} }
