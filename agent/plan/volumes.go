package plan

// planVolumes removes the volumes of a pod that has ended, which may stay desired for years.
// Nothing of it runs any more (kubelet: the same, unless --keep-terminated-pod-volumes is given).
func (s *Facts) planVolumes(p *Plan) {
	if s.Volumes {
		p.then(Action{Do: DoRemoveVolumes, Beside: true, UID: string(s.Pod.UID), Reason: "the pod has ended"})
	}
}
