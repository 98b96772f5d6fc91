# A box at the edge: no one is there to help it, and those who log in have little time.
. "$(dirname "$0")/story.sh"

# A program that says when it starts, and that crashes when it is told to.
app='echo started >>/host/starts.NAME; while [ ! -e /host/crash.NAME ]; do sleep 0.2; done; rm /host/crash.NAME; exit 3'
app() { pod "$1" "${app//NAME/$1}" "${2:-}"; }
starts() { wc -l <"$DIR/host/starts.$1"; }

start_agent

# A slip is told with its place and its remedy, and is mended.
app sensor "  restartPolcy: Always" | put sensor.yaml
until_true hears restartPolcy monopod ps
says 'did you mean "restartPolicy"?' monopod ps
says 'sensor.yaml:' monopod ps
app sensor | put sensor.yaml
app uplink | put uplink.yaml
monopod wait -n "$NS" sensor uplink --timeout 60s
says Running monopod ps

# Files that swap their names disturb nothing.
for _ in 1 2 3; do
	mv "$MANIFESTS/sensor.yaml" "$MANIFESTS/tmp" && mv "$MANIFESTS/uplink.yaml" "$MANIFESTS/sensor.yaml" && mv "$MANIFESTS/tmp" "$MANIFESTS/uplink.yaml"
	sleep 0.5
done
[ "$(starts sensor) $(starts uplink)" = "1 1" ] || fail "the swaps restarted pods: $(starts sensor) $(starts uplink)"

# A rename with a typo keeps the service.
sed 's/name: sensor/name: probe/; s/image:/imgae:/' "$MANIFESTS/uplink.yaml" | put uplink.yaml
until_true hears imgae monopod ps
sleep 1
says "sensor" monopod ps
says_not Terminating monopod ps
app sensor | put uplink.yaml
until_true hears_not imgae monopod ps
[ "$(starts sensor)" = 1 ] || fail "the typo restarted the pod"

# A crash is mended, and told.
touch "$DIR/host/crash.sensor"
until_true eval '[ "$(starts sensor)" = 2 ]'
says "Exit Code:    3" monopod describe -n "$NS" sensor

# A volume that is not there is a sentence wherever one looks.
app disk | sed "s|$DIR/host, type: DirectoryOrCreate|$DIR/missing, type: Directory|" | put disk.yaml
until_true hears FailedMount monopod ps
says "FailedMount" monopod describe -n "$NS" disk
ends_with 124 monopod wait -n "$NS" disk --timeout 2s
grep -q "FailedMount" "$DIR/out" || fail "wait does not say what it waited for: $(cat "$DIR/out")"
says "FailedMount" monopod ps disk
mkdir "$DIR/missing"
monopod wait -n "$NS" disk --timeout 60s

# In pipes the columns stay, and sentences go elsewhere.
[[ $(monopod ps 2>/dev/null) == NAMESPACE* ]] || fail "the columns come and go: $(monopod ps | head -n 1)"
[ "$(monopod ps -n nope 2>/dev/null | wc -l)" = 0 ] || fail "a sentence is among the lines"
says nope monopod ps -n nope

# The power fails: the agent is killed, and commands know what was. All goes on.
end_agent KILL
ends_with 3 monopod ps
grep -q sensor "$DIR/out" || fail "nothing is known without the agent"
start_agent
monopod wait -n "$NS" --all --timeout 60s
[ "$(starts sensor)" = 2 ] || fail "a new agent restarted the pod"

# All goes when the files go.
rm "$MANIFESTS"/*.yaml
monopod wait -n "$NS" --all --for gone --timeout 60s
end_agent
