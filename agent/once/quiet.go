package once

import (
	"context"
	"log/slog"
)

// Quiet keeps from a log what a run prints in its own words: warnings with a reason are those that
// the status of a pod has, too.
func Quiet(h slog.Handler) slog.Handler { return quiet{h} }

type quiet struct{ slog.Handler }

func (q quiet) Handle(ctx context.Context, r slog.Record) error {
	isReported := false
	r.Attrs(func(a slog.Attr) bool {
		// but for those that come with no trouble of the pod itself
		isReported = a.Key == "reason" && a.Value.String() != "FailedToRetrieveImagePullSecret"
		return !isReported
	})
	if isReported && r.Level <= slog.LevelWarn {
		return nil
	}
	return q.Handler.Handle(ctx, r)
}

func (q quiet) WithAttrs(attrs []slog.Attr) slog.Handler { return quiet{q.Handler.WithAttrs(attrs)} }
func (q quiet) WithGroup(name string) slog.Handler       { return quiet{q.Handler.WithGroup(name)} }
