package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"monopod/agent/checkpoint"
	"monopod/agent/print"
	"monopod/agent/volume"
)

// inspectVolumes prints everything that is known of volumes.
func inspectVolumes(ctx context.Context, w io.Writer, root, output string, names []string, f print.Format) error {
	claims, err := claimsOf(names)
	if err != nil {
		return err
	}
	listed, err := volumesIn(root)
	if err != nil {
		return err
	}
	all, failed := []listedVolume{}, []error(nil)
	for _, c := range claims {
		v, err := inspect(ctx, root, c, listed)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		all = append(all, v)
	}
	if output != "" {
		err = print.As(w, output, all)
	} else {
		err = printInspected(w, all, f)
	}
	return errors.Join(append(failed, err)...)
}

func inspect(ctx context.Context, root string, c types.NamespacedName, listed []listedVolume) (listedVolume, error) {
	k := slices.IndexFunc(listed, func(l listedVolume) bool { return l.Name == c.String() })
	if k < 0 {
		return listedVolume{}, fmt.Errorf("there is no volume %s; `monopod volume ls` lists them", c)
	}
	v := listed[k]
	if v.Missing {
		v.makeBy = volume.MakeCommand(root, c)
		return v, nil
	}
	size, err := volume.ClaimSize(ctx, root, c)
	if err != nil {
		return v, fmt.Errorf("volume %s: %w", c, err)
	}
	v.Bytes, v.Made = &size, volume.MadeAt(root, c)
	return v, nil
}

func printInspected(w io.Writer, all []listedVolume, f print.Format) error {
	var out bytes.Buffer
	for k, v := range all {
		if k > 0 {
			out.WriteByte('\n')
		}
		facts := print.VolumeFacts{Name: v.Name, Path: v.Path, UsedBy: v.UsedBy, MakeBy: v.makeBy, Made: v.Made, Bytes: v.Bytes}
		print.DescribeVolume(&out, facts, f)
	}
	_, err := w.Write(out.Bytes())
	return err
}

// volumesIn returns the volumes of a root dir.
func volumesIn(root string) ([]listedVolume, error) {
	pods, err := checkpoint.PodsIn(root)
	if err != nil {
		return nil, err
	}
	claims, err := volume.Claims(root)
	if err != nil {
		return nil, err
	}
	all := make([]listedVolume, len(claims))
	for i, c := range claims {
		all[i] = listedVolume{Name: c.String(), UsedBy: users(pods, c), Path: volume.ClaimDir(root, c), Missing: volume.IsMissing(root, c)}
	}
	return all, nil
}
