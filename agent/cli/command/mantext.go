package command

// manSections are the parts of the manual page that belong to no command.
var manSections = []struct {
	title string
	items []struct{ name, text string }
}{
	{"EXIT STATUS", []struct{ name, text string }{
		{"0", "It was done, or what was asked for is so."},
		{"1", "It was not done; a sentence on standard error says why. diff: something would change."},
		{"2", "Wrong flags or arguments, or invalid manifests."},
		{"3", "The agent does not run. ps, describe: what it reported last was printed. Others: nothing was done."},
		{"124", "wait, restart, stop, start: the time given by --timeout was over."},
		{"126", "exec: the command cannot be executed."},
		{"127", "exec: there is no such command in the container."},
		{"128 and more", "exec, attach, port-forward, cp, logs: 128 and the number of the signal that ended monopod. Ctrl-C ends port-forward with 0."},
		{"130", "wait, restart: ended by SIGINT or SIGTERM."},
		{"any other", "exec: that of the command."},
	}},
	{"SIGNALS", []struct{ name, text string }{
		{"SIGTERM, SIGINT", "run: the agent ends; its pods run on, and the next agent finds them. Other commands end; what they began in the agent goes on."},
		{"SIGWINCH", "exec -t, attach -it: the terminal of the command or container gets the new size."},
	}},
	{"ENVIRONMENT", []struct{ name, text string }{
		{"MONOPOD_SOCKET, MONOPOD_ROOT, MONOPOD_CONFIG", "What --socket, --root and --config say where they are not given. Empty ones do not count."},
		{"CONTAINER_RUNTIME_ENDPOINT", "The same of --runtime-endpoint, as with crictl."},
		{"NO_COLOR", "If it is set and not empty, nothing is coloured. Nothing is where the output is no terminal either."},
	}},
	{"FILES", []struct{ name, text string }{
		{"/run/monopod.sock", "The agent's socket."},
		{"/var/lib/monopod", "Volumes, checkpoints and status, of root only."},
		{"/var/lib/monopod/volumes/NAMESPACE_CLAIM", "What a persistentVolumeClaim stands for. It outlives the pods."},
		{"/var/lib/monopod/claims", "Which of them were made: one that is missing then is waited for, and not made again."},
		{"/var/lib/monopod/status/pods/NAMESPACE_NAME.json", "Each pod as a v1 Pod with its status."},
		{"/var/lib/monopod/status/manifests.json", "What became of each manifest."},
		{"/var/lib/monopod/status/runtime.json", "The runtime that answered the agent last."},
		{"/var/lib/monopod/folder.json", "Which folder the manifests were read from, so that no other is taken for it."},
		{"/var/lib/monopod/history", "The versions of each pod that were ready last, to which it can go back."},
		{"/var/log/pods", "The containers' logs."},
	}},
}
