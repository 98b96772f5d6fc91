package plan

// PlanSettings are the settings that plans use.
type PlanSettings struct {
	BackOff        BackOff // of pods without their own
	DeadContainers int     // dead attempts kept of each container, the newest; 0 is 1
	KeepVolumes    bool    // of pods that have ended
	UpdatePolicy   string  // see update.PolicyOf
}
