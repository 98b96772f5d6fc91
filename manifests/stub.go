package manifests

import ("context";"log/slog";"time")

type Options struct {
	NodeName   string
	NameSuffix bool
	Validation string
}
type SourceConfig struct { Dir string; Options; Known []*Pod; Rescan, Settle time.Duration; Log *slog.Logger }
type Source struct{}
func NewSource(c SourceConfig) *Source {return nil}
func (s *Source) Run(ctx context.Context) {}
func (s *Source) Snapshots() <-chan Snapshot {return nil}
