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

// await makes a write, and logs once if the disk does not answer. A write cannot be cancelled: the
// caller waits for it without limit while the agent runs, and gives up once the agent ends and
// writeWithin has passed. what names the data in the log.
func (d diskWrites) await(ctx context.Context, what string, write func() error) error {
	answer := make(chan error, 1)
	go func() { answer <- write() }()
	timer := time.NewTimer(writeWithin)
	defer timer.Stop()
	select {
	case err := <-answer:
		return err
	case <-timer.C:
		d.sayLate(what)
	}
	select {
	case err := <-answer:
		d.shared.Log.Info("the disk of the root dir answers again", "write", what)
		return err
	case <-ctx.Done():
		return errAway
	}
}

func (d diskWrites) sayLate(what string) {
	const text = "the disk of the root dir does not answer; what is to be written waits for it"
	d.shared.Log.Error(text, "write", what, "after", writeWithin)
	d.shared.Events.Record(events.NodeRef(d.shared.Disk.Machine.Cfg.NodeName), v1.EventTypeWarning, "RootDirNotWritable",
		message.Of("%s: %s", message.Name(what), message.Fixed(text)))
}
