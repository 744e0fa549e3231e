package worker

import (
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
	d.checkFinds(path, a.Found, a.Absent, finds)
}

func (d *decoder) checkMCPAsk(path string, a *tool.MCPAsk, finds bool) {
	if a == nil {
		return
	}
	if a.Tool == "" {
		d.fail(path, "%s names no tool; add tool: and the server's name of the one to ask", value{path: path}.shown())
	}
	d.checkFinds(path, a.Found, a.Absent, finds)
}

func (d *decoder) checkFinds(path, found, absent string, finds bool) {
	name := value{path: path}.shown()
	switch {
	case !finds:
		d.only(path, "reconcile: what is observed is neither found nor absent", "found", "absent")
	case found == "":
		d.fail(path, "%s has no found; add the condition that says that the call happened", name)
	case absent == "":
		d.fail(path, "%s has no absent; add the condition that proves that nothing happened, or absent: \"false\" if nothing does", name)
	}
}
