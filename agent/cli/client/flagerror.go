package client

// FlagError is an error about what a flag says, by its long name without dashes. The
// command line tells of a variable that said it instead.
type FlagError struct {
	Flag string
	Err  error
}

func (e *FlagError) Error() string { return e.Err.Error() }
func (e *FlagError) Unwrap() error { return e.Err }
