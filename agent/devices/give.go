package devices

import (
	"errors"
	"slices"

	v1 "k8s.io/api/core/v1"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/manifests/devicename"
)

// Given is what the runtime gives a container.
type Given struct {
	Devices []*rt.Device
	CDI     []string // full names
}

// Give returns the devices that a container gets that is made now. A device that is gone is
// replaced by another one of its resource that is free. What is assigned is on disk by then. Errors
// are sentences.
func (k *Keeper) Give(p *v1.Pod, c *v1.Container) (g Given, err error) {
	if k == nil {
		return g, nil
	}
	assigned, err := k.assigned(p, c.Name)
	if err != nil {
		return g, err
	}
	for _, d := range assigned {
		if err := k.add(&g, d); err != nil {
			return Given{}, err
		}
	}
	for _, d := range Named(p, c) {
		if err := k.add(&g, d); err != nil {
			return Given{}, err
		}
	}
	return g, nil
}

// assigned returns the devices that a container has of the resources of the settings.
func (k *Keeper) assigned(p *v1.Pod, container string) ([]devicename.Device, error) {
	if !k.Counts() {
		return nil, nil
	}
	all, err := k.assign(p, container)
	if err == nil && k.holds(p) {
		err = k.save()
	}
	return all, err
}

// holds reports whether a version of a pod has any device.
func (k *Keeper) holds(p *v1.Pod) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.table.isHeld(keyOf(p), string(p.UID))
}

func (k *Keeper) assign(p *v1.Pod, container string) ([]devicename.Device, error) {
	requests := k.requests(p, container)
	k.mu.Lock()
	defer k.mu.Unlock()
	next, all, err := k.chosen(p, container, requests)
	if err == nil {
		k.set(next)
	}
	return all, err
}

// requests returns what a pod requests. The names by which one of its containers requests devices are
// followed, which may wait for a disk.
func (k *Keeper) requests(p *v1.Pod, container string) []Request {
	all := Requests(p, k.Has)
	for at := range all {
		r := &all[at]
		if r.Container == container && r.Device != nil && r.Device.Path != "" {
			r.Real, _ = Resolve(r.Device.Path) // Give says it of one that is not there
		}
	}
	return all
}

// chosen returns the devices that a container would get now, and the table in which it has them. The
// caller has the lock.
func (k *Keeper) chosen(p *v1.Pod, container string, requests []Request) (next *Table, all []devicename.Device, err error) {
	pod, version := keyOf(p), string(p.UID)
	next = k.table.clone()
	next.replaceMissing(pod, version, container)
	for at, r := range requests {
		isOf := r.Container == container || r.Container == "" // what the pod has for all was not there when it was admitted
		if !isOf {
			continue
		}
		if refusal := next.assign(pod, version, requests, at); refusal != nil {
			return nil, nil, refusal
		}
		if r.Device == nil {
			all = append(all, k.devicesOf(next.held[holding{pod, version, container, r.Resource}].ids, r.Resource)...)
		}
	}
	return next, all, nil
}

// devicesOf returns devices of a resource as they are given to containers.
func (k *Keeper) devicesOf(ids []string, resource string) (all []devicename.Device) {
	r := k.settings.Resources[resource]
	for _, id := range ids {
		d := devicename.Device{CDI: id}
		if !slices.Contains(r.CDI, id) {
			d = devicename.Device{Path: id, In: id, Permissions: r.Permissions}
		}
		all = append(all, d)
	}
	return all
}

// add gives a device, if it is there. Else Run looks for it.
func (k *Keeper) add(g *Given, d devicename.Device) error {
	if d.CDI != "" && slices.Contains(g.CDI, d.CDI) {
		return nil
	}
	real, err := k.find(d)
	if err != nil {
		k.await(d)
		return err
	}
	if d.CDI != "" {
		g.CDI = append(g.CDI, d.CDI)
		return nil
	}
	g.Devices = append(g.Devices, &rt.Device{HostPath: real, ContainerPath: d.In, Permissions: d.Permissions})
	return nil
}

// find returns the path of a device without links, "" of one of CDI. The error is a sentence.
func (k *Keeper) find(d devicename.Device) (string, error) {
	if d.CDI == "" {
		return Resolve(d.Path)
	}
	if !CDINames(k.settings.SpecDirs)[d.CDI] {
		return "", errors.New(noSpec(d.CDI, k.settings.SpecDirs) + ", or correct the name")
	}
	return "", nil
}

// LookAt checks whether the devices are there for containers of a pod that are to start: those that
// they request by their names, and, of a version that has some, those of the resources of the
// settings. The error is a sentence.
func (k *Keeper) LookAt(p *v1.Pod, starts []*v1.Container) error {
	if k == nil {
		return nil
	}
	for _, c := range starts {
		assigned, err := k.present(p, c.Name)
		if err != nil {
			return err
		}
		var g Given
		for _, d := range slices.Concat(assigned, Named(p, c)) {
			if err := k.add(&g, d); err != nil {
				return err
			}
		}
	}
	return nil
}

// present returns the devices that a container would get now if its version has devices already, or
// names one by a path; else Room says it. Nothing is assigned.
func (k *Keeper) present(p *v1.Pod, container string) ([]devicename.Device, error) {
	if !k.Counts() {
		return nil, nil
	}
	requests := k.requests(p, container)
	isNamed := slices.ContainsFunc(requests, func(r Request) bool { return r.Real != "" })
	k.mu.Lock()
	defer k.mu.Unlock()
	if !isNamed && !k.table.isHeld(keyOf(p), string(p.UID)) {
		return nil, nil
	}
	_, all, err := k.chosen(p, container, requests)
	return all, err
}
