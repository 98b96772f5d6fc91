package podspec

import (
	"reflect"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
)

// What is written out comes to what the container got of the objects.
func TestVariablesOfObjectsAreWrittenOut(t *testing.T) {
	yes := true
	objects := given{"default/m": {"a": "costs $(B) $5", "z": ""}, "default/s": {"key": "hush", "raw": "\xff"}}
	ofMap := func(name, key string, optional *bool) *v1.EnvVarSource {
		return &v1.EnvVarSource{ConfigMapKeyRef: &v1.ConfigMapKeySelector{LocalObjectReference: v1.LocalObjectReference{Name: name}, Key: key, Optional: optional}}
	}
	ofSecret := func(key string) *v1.EnvVarSource {
		return &v1.EnvVarSource{SecretKeyRef: &v1.SecretKeySelector{LocalObjectReference: v1.LocalObjectReference{Name: "s"}, Key: key}}
	}
	uid := v1.EnvVar{Name: "U", ValueFrom: &v1.EnvVarSource{FieldRef: &v1.ObjectFieldSelector{FieldPath: "metadata.uid"}}}
	own := v1.EnvVar{Name: "B", Value: "$(P_a)"}
	c := &v1.Container{
		EnvFrom: []v1.EnvFromSource{{Prefix: "P_", ConfigMapRef: &v1.ConfigMapEnvSource{LocalObjectReference: v1.LocalObjectReference{Name: "m"}}}},
		Env:     []v1.EnvVar{own, uid, {Name: "S", ValueFrom: ofSecret("key")}, {Name: "O", ValueFrom: ofMap("none", "x", &yes)}},
	}
	p := &v1.Pod{}
	p.Namespace = "default"
	got, err := Inline(p, c, Input{Objects: objects})
	want := []v1.EnvVar{{Name: "P_a", Value: "costs $$(B) $$5"}, {Name: "P_z"}, own, uid, {Name: "S", Value: "hush"}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v\n got %v\nwant %v", err, got, want)
	}
	before, err := environment(p, c, Input{Objects: objects}, &Host{})
	after, failed := environment(p, &v1.Container{Env: got}, Input{}, &Host{})
	if err != nil || failed != nil || !reflect.DeepEqual(before.Values, after.Values) {
		t.Errorf("%v, %v: %v became %v", err, failed, before, after)
	}
	for key, says := range map[string]string{"raw": "no text", "none": "couldn't find key"} {
		c.Env = []v1.EnvVar{{Name: "S", ValueFrom: ofSecret(key)}}
		if _, err := Inline(p, c, Input{Objects: objects}); err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "\xff") {
			t.Errorf("key %s: %v", key, err)
		}
	}
}
