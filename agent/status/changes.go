package status

// Changes returns a channel that signals changes of pods and of the runtime: its
// one slot is filled with each, so that a reader that empties it and then looks
// has seen the newest. The reader must do so for as long as the store lives.
func (s *Store) Changes() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := make(chan struct{}, 1)
	s.listeners = append(s.listeners, c)
	return c
}

// changed tells of a change: s.mu is held.
func (s *Store) changed() {
	for _, c := range s.listeners {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}
