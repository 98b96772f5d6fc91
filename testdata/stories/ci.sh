# A job of CI: pods that test each other, run to their end, with reports.
. "$(dirname "$0")/story.sh"
cd "$DIR"
export TMPDIR="$DIR/tmp"
mkdir -p "$TMPDIR"
once() { monopod once --node-name node1 --cgroup-root "$CGROUPS" "$@"; }

# A service and a test that finds it by name. What both lack is filled in.
cat >pods.yaml <<END
apiVersion: v1
kind: Pod
metadata: {name: api, namespace: $NS}
spec:
  terminationGracePeriodSeconds: 2
  containers:
  - name: web
    image: $IMAGE
    command: [sh, -c, 'mkdir /www; echo answer \$(ANSWER) >/www/index.html; exec httpd -f -p 8080 -h /www']
    readinessProbe: {tcpSocket: {port: 8080}, periodSeconds: 1}
---
apiVersion: v1
kind: Pod
metadata: {name: test, namespace: $NS, annotations: {monopod.start-after: api}}
spec:
  restartPolicy: Never
  containers:
  - name: test
    image: placeholder:1
    command: [sh, -c, 'wget -qO- http://api:8080/ | tee /out/answer; echo no such line in the way; exit \$(CODE)']
END
echo "ANSWER=42" >values.env
CODE=0 ends_with 0 once --env-file values.env --env CODE --set "test=$IMAGE" --artifact "test/test:/out=artifacts" --timeout 3m pods.yaml
grep -q "answer 42" "$DIR/out" || fail "the test did not find the service: $(cat "$DIR/out")"
grep -q "test: succeeded" "$DIR/out" || fail "the pods are not summed up: $(cat "$DIR/out")"
grep -q "answer 42" artifacts/answer || fail "no artifact"

# A failure has its code, and its last lines in the report.
CODE=5 ends_with 5 once --env-file values.env --env CODE --set "test=$IMAGE" --artifact "test/test:/out=artifacts" --report junit=report.xml --timeout 3m pods.yaml
grep -q "exit code 5" report.xml && grep -q "no such line in the way" report.xml || fail "the report is: $(cat report.xml)"

# A value that is missing is an error with its place; nothing is started.
ends_with 2 once --env-file values.env --env NOT_SET --env CODE --set "test=$IMAGE" pods.yaml
grep -q 'pods.yaml:.*\$(CODE) has no value' "$DIR/out" || fail "$(cat "$DIR/out")"

# On GitHub problems are marked where they are.
echo "kind: Pot" >bad.yaml
GITHUB_ACTIONS=true ends_with 2 once bad.yaml
grep -q '^::error file=bad.yaml,line=1' "$DIR/out" || fail "$(cat "$DIR/out")"

# A run that takes too long says what it waited for.
pod slow 'sleep 3600' | sed 's/hostNetwork: true/hostNetwork: true\n  restartPolicy: Never/' >slow.yaml
ends_with 124 once --timeout 6s slow.yaml
grep -q "slow/main still runs" "$DIR/out" || fail "$(cat "$DIR/out")"

# An image that no registry has ends the run, long before its time.
ends_with 125 once --timeout 5m --set main="${IMAGE%:*}:none" slow.yaml
grep -q "cannot start" "$DIR/out" || fail "$(cat "$DIR/out")"

# The first failure may be the end of all; the run has a folder of its own.
{ pod fails 'sleep 1; exit 7'; echo ---; pod long 'sleep 3600'; } | sed 's/hostNetwork: true/hostNetwork: true\n  restartPolicy: Never/' >two.yaml
ends_with 7 once --fail-fast --dir "$DIR/run" --timeout 3m two.yaml
[ ! -e "$DIR/run" ] || fail "the folder of the run is left"
[ -z "$(ls "$TMPDIR")" ] || fail "left in TMPDIR: $(ls "$TMPDIR")"
