//go:build e2e

package e2e

import (
	"os"
	"strings"
	"testing"

	"monopod/agent/e2e/rig"
)

func TestMain(m *testing.M) {
	rig.Janitor()
	os.Exit(m.Run())
}

// scenario is one story of a user. Its name, in lower case, is the namespace of
// its pods; it has an agent of its own, not started.
type scenario struct {
	name string
	run  func(w *world)
}

// TestMonopod tells every story on every runtime. A runtime is shared by the
// stories; what they leave behind there fails the run.
func TestMonopod(t *testing.T) {
	binary := monopod(t)
	for _, version := range rig.Tested() {
		t.Run(version, func(t *testing.T) {
			r := open(t, version)
			for _, s := range scenarios() {
				t.Run(s.name, func(t *testing.T) { s.run(newWorld(t, r, binary, strings.ToLower(s.name))) })
			}
		})
	}
}

// TestKills kills the agent in the middle of what it does. It has a runtime to
// itself: both containerds lose a shim now and then when a client dies during a call,
// whichever client that is, so what is left in the runtime is only logged. The
// agent must still remove all that the runtime knows of.
func TestKills(t *testing.T) {
	binary := monopod(t)
	for _, version := range rig.Tested() {
		t.Run(version, func(t *testing.T) {
			r := openLeaky(t, version)
			survivesKillsWhileStarting(newWorld(t, r, binary, "kills"))
		})
	}
}

func scenarios() []scenario {
	return []scenario{
		{"StartsAPod", startsAPod},
		{"StartsTwelveAtOnce", startsTwelveAtOnce},
		{"RunsInitContainersInOrder", runsInitContainersInOrder},
		{"ShowsThePodInFiles", showsThePodInFiles},
		{"TellsWhatIsUsed", tellsWhatIsUsed},
		{"ReportsTheNode", reportsTheNode},
		{"TakesObjects", takesObjects},
		{"TellsContainersOfChangedConfig", tellsContainersOfChangedConfig},
		{"TakesPodsFromAURL", takesPodsFromAURL},
		{"LayersFolders", layersFolders},
		{"FollowsNameServers", followsNameServers},
		{"ReadsEnvFiles", readsEnvFiles},
		{"RunsWorkloads", runsWorkloads},
		{"TellsADeployer", tellsADeployer},
		{"MountsImages", mountsImages},
		{"KeepsSubPathsInTheirVolume", keepsSubPathsInTheirVolume},
		{"GivesPodsTheirOwnUsers", givesPodsTheirOwnUsers},
		{"StopsAtAFailedInitContainer", stopsAtAFailedInitContainer},
		{"RecoversAFailedInitContainer", recoversAFailedInitContainer},
		{"TellsOfAnOOMKill", tellsOfAnOOMKill},
		{"GivesContainersCPUsOfTheirOwn", givesContainersCPUsOfTheirOwn},
		{"GivesOnePodADevice", givesOnePodADevice},
		{"GivesDevicesByName", givesDevicesByName},
		{"WaitsForAnImage", waitsForAnImage},
		{"TellsWhatHappened", tellsWhatHappened},
		{"StartsPodsInOrder", startsPodsInOrder},
		{"PullsWithCredentials", pullsWithCredentials},
		{"PullsThroughTrouble", pullsThroughTrouble},
		{"ImportsArchives", importsArchives},
		{"FollowsTags", followsTags},
		{"RotatesLogs", rotatesLogs},
		{"FollowsLogs", followsLogs},
		{"KeepsTheLastDead", keepsTheLastDead},
		{"ShowsOnlyWhatOneMaySee", showsOnlyWhatOneMaySee},
		{"RemovesWhatAKilledAgentLeft", removesWhatAKilledAgentLeft},
		{"ConnectsPods", connectsPods},
		{"PlacesPodsInCgroups", placesPodsInCgroups},
		{"HoldsOthersToWhatIsReserved", holdsOthersToWhatIsReserved},
		{"RunsPodsWithoutCgroups", runsPodsWithoutCgroups},
		{"RunsCrunBesideRunc", runsCrunBesideRunc},
		{"RestartsACrashedContainer", restartsACrashedContainer},
		{"RestartsWhatLostItsProcess", restartsWhatLostItsProcess},
		{"FollowsRestartPolicies", followsRestartPolicies},
		{"TellsWhoIsReady", tellsWhoIsReady},
		{"RestartsWhatIsUnhealthy", restartsWhatIsUnhealthy},
		{"StartsAfterASidecarHasStarted", startsAfterASidecarHasStarted},
		{"RestartsAllContainers", restartsAllContainers},
		{"RunsHooks", runsHooks},
		{"RestartsAfterAFailedHook", restartsAfterAFailedHook},
		{"RunsAnInterruptedHookAgain", runsAnInterruptedHookAgain},
		{"CutsALongPreStop", cutsALongPreStop},
		{"KillsWhatIgnoresSIGTERM", killsWhatIgnoresSIGTERM},
		{"EndsStraysWithTheCgroup", endsStraysWithTheCgroup},
		{"EndsASidecarWithItsJob", endsASidecarWithItsJob},
		{"StopsSidecarsLast", stopsSidecarsLast},
		{"GoesOnWithARemoval", goesOnWithARemoval},
		{"EndsAtADeadline", endsAtADeadline},
		{"ReplacesAnEditedPod", replacesAnEditedPod},
		{"UpdatesWait", updatesWait},
		{"RollsBack", rollsBack},
		{"ChangesInPlace", changesInPlace},
		{"LeavesAlone", leavesAlone},
		{"LeavesAnUnchangedPod", leavesAnUnchangedPod},
		{"RemovesADeletedPod", removesADeletedPod},
		{"RunsGoodBesideBad", runsGoodBesideBad},
		{"HoldsThroughABadEdit", holdsThroughABadEdit},
		{"WaitsForTheFolder", waitsForTheFolder},
		{"HoldsWhenTheFolderVanishes", holdsWhenTheFolderVanishes},
		{"RemovesWhatWentWhileDown", removesWhatWentWhileDown},
		{"LeavesPodsOnSIGTERM", leavesPodsOnSIGTERM},
		{"RecoversFromARuntimeCrash", recoversFromARuntimeCrash},
		{"CountsWhatItDoes", countsWhatItDoes},
		{"RunsCommandsInContainers", runsCommandsInContainers},
		{"ForwardsPorts", forwardsPorts},
		{"AttachesToContainers", attachesToContainers},
		{"CopiesFiles", copiesFiles},
		{"RestartsWhenAsked", restartsWhenAsked},
		{"RefusesToStart", refusesToStart},
		{"RunsOnce", runsOnce},
		{"TellsStories", tellsStories},
	}
}

// monopod returns the binary to test: MONOPOD_BIN, or a fresh build.
func monopod(t *testing.T) string {
	t.Helper()
	if bin := os.Getenv("MONOPOD_BIN"); bin != "" {
		return bin
	}
	bin, err := rig.Build(t.TempDir())
	check(t, err)
	return bin
}
