package plan

// PlanSettings is what of the settings plans go by.
type PlanSettings struct {
	BackOff        BackOff // of pods without their own
	DeadContainers int     // kept of each container of a pod, the newest; 0 is 1
}
