package plan

// PlanSettings are the settings that plans use.
type PlanSettings struct {
	BackOff        BackOff // the back-off of pods without their own
	DeadContainers int     // dead attempts kept of each container, the newest; 0 is 1
	KeepVolumes    bool    // pods that have ended keep their volumes
	UpdatePolicy   string  // see update.PolicyOf
}
