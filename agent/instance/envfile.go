package instance

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"strings"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/disk"
	"monopod/agent/podspec"
	"monopod/agent/volume"
)

// mostEnvFile is the size of the largest env file that is read, in bytes: Linux passes no more to a
// process.
const mostEnvFile = 1 << 20

// ReadEnvFiles reads the files in emptyDirs from which a container's variables get their values.
// Containers write them: no link is followed.
func (f *Files) ReadEnvFiles(pod *v1.Pod, c *v1.Container) map[podspec.EnvFile]podspec.EnvFileContent {
	var all map[podspec.EnvFile]podspec.EnvFileContent
	for _, file := range podspec.EnvFilesOf(c) {
		if all == nil {
			all = map[podspec.EnvFile]podspec.EnvFileContent{}
		}
		data, err := readEnvFile(volume.EmptyDir(f.Disk.Root.Dir, string(pod.UID), file.Volume), path.Clean(file.Path))
		all[file] = podspec.EnvFileContent{Data: data, Err: err}
	}
	return all
}

// readEnvFile reads the file at a path below a volume. The error names nothing of the machine.
func readEnvFile(dir, below string) ([]byte, error) {
	if !filepath.IsLocal(below) {
		return nil, errors.New("its path leads out of the volume")
	}
	in, name := path.Split(below)
	depth := 0
	if in = strings.Trim(in, "/"); in != "" {
		depth = strings.Count(in, "/") + 1
	}
	d, err := disk.OpenDir(filepath.Join(dir, in), depth)
	if err != nil {
		return nil, withoutPath(err)
	}
	defer d.Close()
	file, err := d.Open(name)
	if err != nil {
		return nil, withoutPath(err)
	}
	defer file.Close()
	s, err := disk.StatOf(file)
	if err == nil && s.Size() > mostEnvFile {
		err = fmt.Errorf("it is larger than %d bytes", mostEnvFile)
	}
	if err != nil {
		return nil, withoutPath(err)
	}
	data, err := disk.ReadAll(file, mostEnvFile)
	return data, withoutPath(err)
}

func withoutPath(err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}
