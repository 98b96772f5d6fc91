package status

// OnTrouble has tell called when a report cannot be written, once for each
// cause until all could be again. It must return at once, and not call the store.
func (s *Store) OnTrouble(tell func(err error)) {
	s.writer.mu.Lock()
	defer s.writer.mu.Unlock()
	s.writer.trouble = tell
}
