package archives

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
)

const app = "docker.io/library/app:1"

func without(files []made, at int) []made { return slices.Delete(slices.Clone(files), at, at+1) }

func TestAnArchivesImagesAreReadWithoutItsLayers(t *testing.T) {
	for _, test := range []struct {
		what  string
		files []made
		want  Index
	}{
		{"an OCI archive", ociOf(app, "amd64"), Index{OCI, []Image{{app, idOf("amd64"), app}}}},
		{"a docker archive with a short name", dockerOf("app:1", "amd64"), Index{Docker, []Image{{app, idOf("amd64"), "app:1"}}}},
	} {
		got, err := ReadIndex(bytes.NewReader(tarOf(test.files)), "amd64")
		if err != nil || !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s: %+v, %v", test.what, got, err)
		}
	}
}

// Of an image for several machines the one for this machine counts; those that are not in the
// archive do not matter.
func TestAnImageForSeveralMachinesIsTheOneForThis(t *testing.T) {
	layer, config, manifest := parts("arm64")
	index := asJSON(object{"manifests": []object{
		{"digest": "sha256:missing", "platform": object{"architecture": "amd64", "os": "linux"}},
		{"digest": digestOf(manifest), "platform": object{"architecture": "arm64", "os": "linux"}}}})
	top := asJSON(object{"manifests": []object{{"digest": digestOf(index), "annotations": object{"io.containerd.image.name": app}}}})
	all := tarOf([]made{blobOf(layer), blobOf(config), blobOf(manifest), blobOf(index), {"index.json", top}, {"oci-layout", []byte("{}")}})
	got, err := ReadIndex(bytes.NewReader(all), "arm64")
	if err != nil || len(got.Images) != 1 || got.Images[0].ID != digestOf(config) {
		t.Errorf("%+v, %v", got, err)
	}
	_, err = ReadIndex(bytes.NewReader(all), "riscv64")
	if err == nil || !strings.Contains(err.Error(), "is for other machines than linux/riscv64") {
		t.Errorf("for another machine: %v", err)
	}
}

func TestABrokenArchiveSaysWhatToDo(t *testing.T) {
	oci, docker := ociOf(app, "amd64"), dockerOf(app, "amd64")
	for _, test := range []struct {
		what    string
		archive []byte
		says    string
	}{
		{"no tar", []byte(strings.Repeat("no archive ", 100)), "it is no archive of images: make one"},
		{"a tar of something else", tarOf([]made{{"etc/passwd", []byte("x")}}), "it is no archive of images"},
		{"a truncated one", tarOf(oci)[:4000], "it ends too early: copy it again"},
		{"a damaged one", slices.Concat(tarOf(oci)[:9216], bytes.Repeat([]byte("x"), 1024)), "it is damaged: copy it again"},
		{"one that lacks the layer", tarOf(without(oci, 0)), "it lacks blobs/sha256/"},
		{"one that lacks the manifest", tarOf(without(oci, 2)), "of its image " + app + ": it lacks blobs/sha256/"},
		{"one of docker's that lacks the layer", tarOf(without(docker, 0)), "it lacks l/layer.tar of its image " + app},
		{"one that names no image", tarOf(ociOf("", "amd64")), "it names no image: save it again with a full name"},
		{"one whose image is a mere tag", tarOf(ociOf("latest", "amd64")), `calls an image "latest", which is not a full name`},
		{"another machine's", tarOf(ociOf(app, "arm64")), "is for linux/arm64, and this machine is linux/amd64: save that of --platform linux/amd64"},
		{"one with very many images", tarOf([]made{{"manifest.json", slices.Concat([]byte("["), bytes.Repeat([]byte(" "), maxDocument), []byte("]"))}}), "larger descriptions of images, than can be read: make one archive of each image"},
		{"one with a broken index", tarOf([]made{{"oci-layout", []byte("{}")}, {"index.json", []byte("{")}}), "index.json in it is damaged"},
	} {
		_, err := ReadIndex(bytes.NewReader(test.archive), "amd64")
		if err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v", test.what, err)
		}
	}
}

// A hostile archive fills no memory.
func TestWhatIsReadOfAnArchiveIsBounded(t *testing.T) {
	var files []made
	for n := range 20 {
		files = append(files, made{fmt.Sprint(n), append([]byte("{"), make([]byte, maxDocument-1)...)})
	}
	_, err := ReadIndex(bytes.NewReader(tarOf(files)), "amd64")
	if err != errLarge {
		t.Errorf("large documents: %v", err)
	}
}
