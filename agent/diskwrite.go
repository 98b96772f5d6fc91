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

// writeWithin is how long the disk of the root dir may take for a write of the sync loop until that
// is said.
const writeWithin = 10 * time.Second

// diskWrites are writes to the root dir that the sync loop has made beside itself. Any goroutine
// may use it.
type diskWrites struct{ shared *worker.Pool }

// errAway is that the agent ended while the disk did not answer.
var errAway = errors.New("the disk of the root dir has not answered")

// await makes a write, and says once if the disk does not answer. Nothing ends a write before it
// does: the caller waits for it without end while the agent runs, and gives it up once that ends and
// writeWithin is over. what names what is written.
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
