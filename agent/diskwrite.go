package agent

import (
	"context"
	"errors"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/events"
	"monopod/agent/message"
	"monopod/agent/worker"
)

// writeWithin is how long a write of the sync loop to the root dir may take before the delay is
// logged.
const writeWithin = 10 * time.Second

// diskWrites are writes to the root dir that run in the background of the sync loop. Any goroutine
// may use it.
type diskWrites struct{ shared *worker.Pool }

// errAway reports that the agent ended while the disk did not answer.
var errAway = errors.New("the disk of the root dir has not answered")

// await makes writes, one after the other, and logs if the disk does not answer one of them. A write
// cannot be cancelled: the caller waits for it without limit while the agent runs, and gives up once
// the agent ends and writeWithin has passed. what names the data in the log.
func (d diskWrites) await(ctx context.Context, what string, writes ...func() error) error {
	start := time.Now()
	answers := make(chan error, len(writes))
	go func() {
		for _, write := range writes {
			answers <- write()
		}
	}()
	var errs []error
	for range writes {
		late := time.NewTimer(writeWithin)
		select {
		case err := <-answers:
			errs = append(errs, err)
		case <-late.C:
			d.sayLate(what)
			select {
			case err := <-answers:
				errs = append(errs, err)
				d.shared.Log.Info("the disk of the root dir answers again", "write", what)
			case <-ctx.Done():
			}
		}
		late.Stop()
		if len(errs) < len(writes) && ctx.Err() != nil && time.Since(start) >= writeWithin {
			return errAway
		}
	}
	return errors.Join(errs...)
}

func (d diskWrites) sayLate(what string) {
	const text = "the disk of the root dir does not answer; what is to be written waits for it"
	d.shared.Log.Error(text, "write", what, "after", writeWithin)
	d.shared.Events.Record(events.NodeRef(d.shared.Disk.Machine.Cfg.NodeName), v1.EventTypeWarning, "RootDirNotWritable",
		message.Of("%s: %s", message.Name(what), message.Fixed(text)))
}
