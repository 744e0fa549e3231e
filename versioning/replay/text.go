package replay

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/holdfast-run/holdfast/versioning"
)

// ExplainText says in words why a workflow task failed, from the text that a worker left on the server, or that
// Temporal's own replay returned (sdk-go 1.51, code TMPRL1100). It is false for a text that is about something else.
func ExplainText(text string) (Finding, bool) {
	r, ok := explainText(text, someBuild)
	if ok && r.Advice == "" {
		r.Advice = (&Mismatch{}).advice()
	}
	return r.Finding, ok
}

// Who failed.
const (
	thisBuild = "this build"
	someBuild = "the worker's build"
)

// A reading is what a text says.
type reading struct {
	Finding
	whole   bool // it explains all that differs
	number  bool // it is about the run's change number
	carried bool // it is about what was carried into the run
	about   clue // the command that it is about, where history knows more of it
}

// A rule reads one kind of text. who is the build that failed.
type rule struct {
	text *regexp.Regexp
	read func(who string, part []string) reading
}

// rules, the most telling first; the last takes whatever else is called nondeterministic.
var rules = []rule{
	{regexp.MustCompile(`Workflow code removed support of version (-?\d{1,20})\. for "([^"]{0,200})" changeID\. The oldest supported version is (-?\d{1,20})`), readRetired},
	{regexp.MustCompile(`Workflow code is too old to support version (-?\d{1,20}) for "([^"]{0,200})" changeID\. The maximum supported version is (-?\d{1,20})`), readNewer},
	{regexp.MustCompile(`(?s)checkpoint of schema (-?\d{1,20}) refused: (.*)`), readCheckpoint},
	{regexp.MustCompile(`unable to find workflow type: (.*?)\. Supported types:`), readUnknownType},
	{regexp.MustCompile(`unknown SDK flag: \d{1,20}`), readNewerSDK},
	{regexp.MustCompile(`code executed local activity (\S+), but history event found (\S+), markerData`), readLocal},
	{regexp.MustCompile(`(?s)nondeterministic workflow: missing replay command for (.*)`), readMissing},
	{regexp.MustCompile(`(?s)nondeterministic workflow: extra replay command for (.*)`), readExtra},
	{regexp.MustCompile(`(?s)nondeterministic workflow: history event is (.*?), replay command is (.*)`), readOther},
	{regexp.MustCompile(`a matching (\w+) command was expected in history event position (.*?)\. However`), readExpected},
	{regexp.MustCompile(`(?:lookup failed for scheduledEventID to activityID: scheduleEventID|unable to find activityID for the scheduledEventID): (\d+)`), readLookup},
	{regexp.MustCompile(`(?s)unable to find activityID for the event: (.*)`), readMissing},
	{regexp.MustCompile(`invalid state transition: attempt to (?:handle)?(\w+?)(?:Event)?, CommandType: (\w+), ID: ([^,]*),`), readState},
	{regexp.MustCompile(`(?s)\[TMPRL1100\] *(.*)`), readSome},
}

func explainText(text, who string) (reading, bool) {
	for _, r := range rules {
		if part := r.text.FindStringSubmatch(text); part != nil {
			return r.read(who, part), true
		}
	}
	return reading{}, false
}

func readRetired(who string, part []string) reading {
	typ := typeOf(part[2])
	r := reading{whole: true, number: true}
	r.Recorded, r.Wanted = "number "+part[1]+" of "+typ, "number "+part[3]+" or a higher one"
	r.Cause = fmt.Sprintf("the run carries number %s of %s, which %s does not have any more: it understands %s and higher", part[1], typ, who, part[3])
	r.Advice = "keep a worker of an older build until the last run of number " + part[1] + " has ended; a number is retired after that only"
	if strings.HasPrefix(part[1], "-") {
		r.Recorded = "no number of " + typ
		r.Cause = "the run carries no number of " + typ + ": it began before there was one, or its change id has been renamed"
		r.Advice = "a change id is never renamed: give it its name back, or keep a worker of the build that began the run"
	}
	return r
}

func readNewer(who string, part []string) reading {
	typ := typeOf(part[2])
	r := reading{whole: true, number: true}
	r.Recorded, r.Wanted = "number "+part[1]+" of "+typ, "number "+part[3]+" or a lower one"
	understands := "none above " + part[3]
	if b := versioning.Bounds(typ); who == thisBuild && strconv.Itoa(b.Newest) == part[3] {
		understands = fmt.Sprintf("%d to %d", b.Oldest, b.Newest)
	}
	r.Cause = fmt.Sprintf("the run carries number %s of %s; %s understands %s", part[1], typ, who, understands)
	r.Advice = "a worker of a newer build has to take it, one that understands number " + part[1]
	return r
}

// typeOf returns the workflow type of a change id.
func typeOf(id string) string { return strings.TrimPrefix(id, versioning.ChangeID("")) }

// What [versioning.CheckpointError] says of a schema that is not known yet, and of bytes that are not those that were
// sealed.
const (
	saysNewer   = "a worker of a newer build has to take this run"
	saysAltered = "it was altered"
)

func readCheckpoint(who string, part []string) reading {
	r := reading{whole: true, carried: true}
	why := clip(part[2], maxClipped)
	r.Recorded, r.Wanted = "a state of schema "+part[1], "a state that "+who+" can take"
	switch {
	case strings.Contains(why, saysNewer):
		r.Cause = fmt.Sprintf("the state that was carried into the run is of schema %s, which %s does not know", part[1], who)
		r.Advice = saysNewer
	case strings.Contains(why, saysAltered):
		r.Cause = "the state that was carried into the run was altered: " + why
		r.Advice = "start again from the state of the run before it: holdfast recover"
	default:
		r.Cause = "the state that was carried into the run cannot be taken: " + why
		r.Advice = "a worker of the build that wrote it can go on; else start again from the state of the run before it: holdfast recover"
	}
	return r
}

func readUnknownType(who string, part []string) reading {
	return reading{whole: true, Finding: Finding{
		Event: 1, Recorded: "workflow type " + clip(part[1], maxClipped), Wanted: nothing,
		Cause:  who + " has no such workflow type",
		Advice: "only histories of " + strings.Join(versioning.Types(), " and ") + " can be replayed; a workflow type is never renamed",
	}}
}

func readNewerSDK(who string, part []string) reading {
	return reading{whole: true, Finding: Finding{
		Recorded: part[0], Cause: "the history was written with a newer Temporal SDK than that of " + who,
		Advice: "a worker of a build with that SDK has to take the run",
	}}
}

func readLocal(_ string, part []string) reading {
	d := Difference{Recorded: "local activity " + clip(part[2], maxClipped), Now: "local activity " + clip(part[1], maxClipped)}
	return reading{Finding: d.finding()}
}

func readMissing(_ string, part []string) reading {
	d := Difference{Event: eventIn(part[1]), Recorded: named(part[1]), Now: nothing}
	return reading{Finding: d.finding(), about: printed(part[1])}
}

func readExtra(_ string, part []string) reading {
	return reading{Finding: Difference{Recorded: nothing, Now: named(part[1])}.finding()}
}

func readOther(_ string, part []string) reading {
	d := Difference{Event: eventIn(part[1]), Recorded: named(part[1]), Now: named(part[2])}
	return reading{Finding: d.finding(), about: printed(part[1])}
}

func readExpected(_ string, part []string) reading {
	d := Difference{Recorded: commandName(part[1]) + " " + clip(part[2], maxClipped), Now: nothing}
	d.Event, _ = strconv.ParseInt(part[2], 10, 64) // the SDK names most commands by their event
	return reading{Finding: d.finding(), about: clue{kind: part[1], id: part[2]}}
}

func readLookup(_ string, part []string) reading {
	event, _ := strconv.ParseInt(part[1], 10, 64)
	return reading{Finding: Difference{Event: event, Recorded: string(kindActivity), Now: nothing}.finding(), about: clue{event: event}}
}

func readState(_ string, part []string) reading {
	r := reading{about: clue{kind: part[2], id: part[3], then: part[1]}}
	r.Recorded = commandName(part[2]) + " " + clip(part[3], maxClipped) + ": " + strings.ToLower(clip(part[1], maxClipped))
	r.Wanted = "the same command in another state"
	r.Cause = "the code did something else with a command before history went on with it"
	return r
}

func readSome(_ string, part []string) reading {
	return reading{Finding: Finding{Cause: "the code does something else than history holds: " + clip(part[1], maxClipped)}}
}
