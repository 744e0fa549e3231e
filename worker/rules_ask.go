package worker

import (
	"regexp"
	"strconv"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/tool"
)

// checkAsked reports a tool that promises what it does not say how to do, or the other way round.
func (d *decoder) checkAsked(path, field string, class agent.Class, asks bool) {
	switch {
	case class == agent.ClassReconcilable && !asks:
		d.fail(path, "effect: reconcilable needs %s, which says how to ask what became of a call; add it, or declare another effect", field)
	case class == agent.ClassRead && asks:
		d.fail(path, "a tool that reads is sent again and never asked about; remove %s", field)
	}
}

func (d *decoder) checkHarm(path string, class agent.Class, h Harm, asks bool) {
	if class == agent.ClassRead && (h.Irreversible || h.Compensate != nil) {
		d.fail(path, "%s reads: there is nothing to undo; remove irreversible and compensate", value{path: path}.shown())
	}
	if h.Irreversible && h.Compensate != nil {
		d.fail(path+"/irreversible", "%s is irreversible and has compensate, which undoes it; remove one", value{path: path}.shown())
	}
	if c := h.Compensate; c != nil && c.Tool == "" {
		d.fail(path+"/compensate", "compensate names no tool; add tool: and the name of the tool that undoes it")
	}
	if h.AbsentAfter != 0 && !asks {
		d.fail(path+"/absent_after", "absent_after says when the answer of reconcile proves that nothing happened, and there is no reconcile; add it or remove this")
	}
}

// checkHTTPAsk checks a request that asks. Conditions and templates are checked where they are compiled.
func (d *decoder) checkHTTPAsk(path string, a *HTTPAsk, finds bool) {
	if a == nil {
		return
	}
	if a.Method != "GET" {
		d.fail(path+"/method", "%s is %q; what only asks is sent with GET: leave it out", value{path: path + "/method"}.shown(), clip(a.Method))
	}
	if a.URL == "" {
		d.fail(path, "%s has no url; add url: https://...", value{path: path}.shown())
	}
	d.checkHeaders(path+"/headers", a.Headers)
	d.checkFinds(path, a.Found, finds)
}

func (d *decoder) checkMCPAsk(path string, a *tool.MCPAsk, finds bool) {
	if a == nil {
		return
	}
	if a.Tool == "" {
		d.fail(path, "%s names no tool; add tool: and the server's name of the one to ask", value{path: path}.shown())
	}
	d.checkFinds(path, a.Found, finds)
}

func (d *decoder) checkFinds(path, found string, finds bool) {
	name := value{path: path}.shown()
	switch {
	case !finds:
		d.only(path, "reconcile: what is observed is neither found nor absent", "found", "absent")
	case found == "":
		d.fail(path, "%s has no found; add the condition that says that the call happened", name)
	}
}

var (
	// partOfATool finds in an error of package tool which part of a declaration it is about.
	partOfATool = regexp.MustCompile(`: (reconcile|observe|compensate): (?:(found|absent|argument "([^"]{1,64})"): )?`)
	// placeInAText finds the place in an expression.
	placeInAText = regexp.MustCompile(`"(?:[^"\\]|\\.)*": line (\d+), column (\d+): `)
	// toolOfAServer finds which tool of an MCP server is meant.
	toolOfAServer = regexp.MustCompile(`^mcp server "[^"]*": tool "([^"]{1,80})": `)
)

// failTool reports what package tool says about the declaration at path, at the part that it is about. What asks
// stands below path with the suffix asks.
func (d *decoder) failTool(path, asks string, err error) {
	text := err.Error()
	if m := partOfATool.FindStringSubmatch(text); m != nil {
		if m[1] != "compensate" {
			path += asks
		}
		path += "/" + m[1]
		switch {
		case m[3] != "":
			path += "/args/" + m[3]
		case m[2] != "":
			path += "/" + m[2]
		}
	}
	m := placeInAText.FindStringSubmatchIndex(text)
	if m == nil {
		d.fail(path, "%s", text)
		return
	}
	line, _ := strconv.Atoi(text[m[2]:m[3]])
	column, _ := strconv.Atoi(text[m[4]:m[5]])
	if _, known := d.texts[path]; !known {
		d.fail(path, "%s", text)
		return
	}
	d.add(d.inside(path, line, column), "%s", text[:m[0]]+text[m[1]:])
}

// failServer does the same for an MCP server, whose tools are declared below it.
func (d *decoder) failServer(path string, err error) {
	if m := toolOfAServer.FindStringSubmatch(err.Error()); m != nil {
		if declared := path + "/tools/" + m[1]; d.at[declared] != (position{}) {
			path = declared
		}
	}
	d.failTool(path, "", err)
}
