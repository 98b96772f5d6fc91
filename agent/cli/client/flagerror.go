package client

// FlagError is an error about the value of a flag, by its long name without dashes. If the value
// is from a variable, the command line names the variable.
type FlagError struct {
	Flag string
	Err  error
}

func (e *FlagError) Error() string { return e.Err.Error() }
func (e *FlagError) Unwrap() error { return e.Err }
