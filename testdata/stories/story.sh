# What the stories have in common. Each is read by bash with these variables set:
#   MONOPOD   the program            ENDPOINT  of the runtime      NS       a namespace of its own
#   DIR       an empty folder        CGROUPS   a cgroup of its own IMAGE    an image with a busybox
set -euo pipefail
export MONOPOD_SOCKET="$DIR/monopod.sock" MONOPOD_ROOT="$DIR/root" CONTAINER_RUNTIME_ENDPOINT="$ENDPOINT"
MANIFESTS="$DIR/manifests"
mkdir -p "$MANIFESTS"
agent=""
trap 'code=$?; [ $code = 0 ] || tail -n 40 "$DIR/agent.log" >&2; [ -z "$agent" ] || kill "$agent" 2>/dev/null || true; exit $code' EXIT

monopod() { "$MONOPOD" "$@"; }

# fail says what is wrong and where.
fail() {
	echo "STORY FAILED at line ${BASH_LINENO[1]:-?}: $*" >&2
	monopod ps >&2 || true
	exit 1
}

# start_agent starts the agent with more flags and waits until it answers.
start_agent() {
	"$MONOPOD" run --manifests "$MANIFESTS" --pod-logs "$DIR/logs" --node-name node1 --listen "" --cgroup-root "$CGROUPS" "$@" >>"$DIR/agent.log" 2>&1 &
	agent=$!
	until_true monopod ps
}

# end_agent ends the agent with a signal, SIGTERM unless told otherwise.
end_agent() {
	kill "-${1:-TERM}" "$agent"
	wait "$agent" 2>/dev/null || true
	agent=""
}

# until_true repeats a command until it succeeds, for 40 s.
until_true() {
	for _ in $(seq 200); do
		if "$@" >"$DIR/out" 2>&1; then return; fi
		sleep 0.2
	done
	fail "never true: $* ($(cat "$DIR/out"))"
}

# hears reports whether a command's output, both kinds, has the text. The command may fail.
hears() {
	local text=$1 out
	shift
	out=$("$@" 2>&1) || true
	[[ $out == *"$text"* ]]
}
hears_not() { ! hears "$@"; }

# says fails unless a command's output, both kinds, has the text. The command may fail.
says() {
	local text=$1 out
	shift
	out=$("$@" 2>&1) || true
	[[ $out == *"$text"* ]] || fail "$* does not say \"$text\" but:
$out"
}

# says_not is its opposite.
says_not() {
	local text=$1 out
	shift
	out=$("$@" 2>&1) || true
	[[ $out != *"$text"* ]] || fail "$* says \"$text\":
$out"
}

# ends_with fails unless a command ends with the code.
ends_with() {
	local want=$1 code=0
	shift
	"$@" >"$DIR/out" 2>&1 || code=$?
	[ "$code" = "$want" ] || fail "$* ended with $code, not $want:
$(cat "$DIR/out")"
}

# put puts a manifest into the folder as people should: by rename.
put() { cat >"$DIR/new" && mv "$DIR/new" "$MANIFESTS/$1"; }

# pod prints a manifest: name, script of its container main, more lines of the spec.
pod() {
	cat <<-END
		apiVersion: v1
		kind: Pod
		metadata: {name: $1, namespace: $NS}
		spec:
		  hostNetwork: true
		  terminationGracePeriodSeconds: 3
		  volumes: [{name: host, hostPath: {path: $DIR/host, type: DirectoryOrCreate}}]
		  containers:
		  - {name: main, image: $IMAGE, command: [sh, -c, '$2'], volumeMounts: [{name: host, mountPath: /host}]}
		${3:-}
	END
}
