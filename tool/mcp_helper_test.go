package tool

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

// The test binary started again is a stdio server written by hand, so that it can do what no SDK would.
// helperMode says how it behaves from the start; its tools misbehave when they are called.
const (
	helperMode = "HOLDFAST_TEST_MCP_MODE"
	helperLog  = "HOLDFAST_TEST_MCP_LOG" // a file that gets every line that the server reads
)

func TestHelperMCPServer(t *testing.T) {
	mode := os.Getenv(helperMode)
	if mode == "" {
		t.Skip("the server of other tests, not a test")
	}
	(&rawServer{mode: mode, out: os.Stdout}).serve(os.Stdin)
	os.Exit(0)
}

// helper returns the configuration of such a server.
func helper(t *testing.T, mode string, env ...string) MCPConfig {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return MCPConfig{
		Name: "raw", Command: []string{exe, "-test.run=^TestHelperMCPServer$"},
		Env: append([]string{helperMode + "=" + mode}, env...), ListTimeout: 20 * time.Second,
	}
}

type rawServer struct {
	mode string
	out  io.Writer
	log  *os.File
}

type rawRequest struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

func (s *rawServer) serve(in io.Reader) {
	if path := os.Getenv(helperLog); path != "" {
		s.log, _ = os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	}
	switch s.mode {
	case "talks":
		fmt.Fprintln(s.out, "Hello, I am \x1b[31mready\x1b[0m!")
	case "dies":
		fmt.Fprintln(os.Stderr, "cannot log in with hunter22secret")
		os.Exit(3)
	case "launcher":
		s.launch()
		return
	}
	r := bufio.NewReaderSize(in, 1<<20)
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			s.ended()
			return
		}
		if s.log != nil {
			_, _ = s.log.WriteString(line)
		}
		var req rawRequest
		if json.Unmarshal([]byte(line), &req) == nil && req.ID != nil {
			s.handle(req)
		}
	}
}

// launch runs the server as a child that shares nothing but the pipes, as npx does.
func (s *rawServer) launch() {
	exe, err := os.Executable()
	if err != nil {
		os.Exit(1)
	}
	cmd := exec.Command(exe, "-test.run=^TestHelperMCPServer$")
	cmd.Env = append(os.Environ(), helperMode+"=stays")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	_ = cmd.Run()
}

func (s *rawServer) ended() {
	if s.mode == "stays" { // as a server does whose event loop still has a timer
		select {}
	}
}

func (s *rawServer) handle(r rawRequest) {
	switch r.Method {
	case "initialize":
		if s.mode == "silent" {
			return
		}
		if s.mode == "modern" {
			s.send(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}`, r.ID)
			return
		}
		s.answer(r.ID, `{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"raw","version":"1"}}`)
	case "server/discover":
		s.answer(r.ID, `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true}}}`)
	case "tools/list":
		s.list(r)
	case "tools/call":
		s.call(r)
	case "ping":
		s.answer(r.ID, `{}`)
	default:
		s.send(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}`, r.ID)
	}
}

const rawTools = `"echo","die","exit","hang","junk","glue","huge","twice","garbage","deep","ask","flood","refuse","fail","number","changed","pid","env","secret","slow","deaf"`

func (s *rawServer) list(r rawRequest) {
	switch s.mode {
	case "hanglist":
		return
	case "many":
		s.answer(r.ID, `{"tools":[`+strings.Repeat(`{"name":"t","inputSchema":{"type":"object"}},`, 99_999)+`{"name":"t","inputSchema":{"type":"object"}}]}`)
		return
	case "endless":
		s.answer(r.ID, `{"tools":[],"nextCursor":"again"}`)
		return
	case "badtools":
		s.answer(r.ID, strings.ReplaceAll(badTools, "\n", " "))
		return
	}
	var tools []string
	for name := range strings.SplitSeq(rawTools, ",") {
		description := "does it"
		if s.mode == "changes" && name == `"echo"` {
			description = fmt.Sprint("at ", time.Now().UnixNano())
		}
		tools = append(tools, fmt.Sprintf(`{"name":%s,"description":%q,"inputSchema":{"type":"object"}}`, name, description))
	}
	half := len(tools) / 2 // on two pages
	if strings.Contains(string(r.Params), `"cursor":"2"`) {
		s.answer(r.ID, `{"tools":[`+strings.Join(tools[half:], ",")+`]}`)
	} else {
		s.answer(r.ID, `{"tools":[`+strings.Join(tools[:half], ",")+`],"nextCursor":"2"}`)
	}
}

func (s *rawServer) call(r rawRequest) {
	var p struct {
		Name string `json:"name"`
	}
	_ = json.Unmarshal(r.Params, &p)
	switch p.Name {
	case "die":
		os.Exit(7)
	case "exit":
		s.text(r.ID, "bye")
		os.Exit(0)
	case "hang":
	case "deaf":
		select {}
	case "slow":
		go func() {
			time.Sleep(300 * time.Millisecond) // a slow server is what it plays
			s.text(r.ID, "at last")
		}()
	case "junk":
		fmt.Fprintln(s.out, "debug: handling a call")
		fmt.Fprintln(s.out, `{"half": "a messa`)
		s.text(r.ID, "after junk")
	case "glue":
		fmt.Fprintf(s.out, "debug without an end of line ")
		s.text(r.ID, "lost")
	case "huge":
		fmt.Fprintf(s.out, `{"result":{"content":[{"type":"text","text":"\"id\":99,`)
		for range 4 << 10 {
			fmt.Fprint(s.out, strings.Repeat("x", 1<<10))
		}
		fmt.Fprintf(s.out, "\"}]},\"jsonrpc\":\"2.0\",\"id\":%s}\n", r.ID)
	case "twice":
		s.text(r.ID, "first")
		s.text(r.ID, "second")
	case "garbage":
		s.send(`{"jsonrpc":"2.0","id":%s,"result":{"content":[}}`, r.ID)
	case "deep":
		s.send(`{"jsonrpc":"2.0","id":%s,"result":{"content":[],"structuredContent":%s}}`, r.ID, strings.Repeat("[", 5000)+strings.Repeat("]", 5000))
	case "ask":
		s.send(`{"jsonrpc":"2.0","id":"q1","method":"roots/list"}`)
		s.send(`{"jsonrpc":"2.0","id":"q2","method":"sampling/createMessage","params":{"messages":[],"maxTokens":1}}`)
		s.send(`{"jsonrpc":"2.0","id":"q3","method":"elicitation/create","params":{"message":"password?"}}`)
		s.send(`{"jsonrpc":"2.0","id":"q4","method":"ping"}`)
		s.text(r.ID, "asked")
	case "flood":
		for i := range 20_000 {
			s.send(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":%q}}`, strings.Repeat("y", 200))
			s.send(`{"jsonrpc":"2.0","id":"f%d","method":"roots/list"}`, i)
		}
		s.text(r.ID, "flooded")
	case "refuse":
		s.send(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32602,"message":"amount is missing\u001b[2J"}}`, r.ID)
	case "fail":
		s.answer(r.ID, `{"isError":true,"content":[{"type":"text","text":"no such order"}]}`)
	case "number":
		s.answer(r.ID, `{"content":[],"structuredContent":{"n":9007199254740993,"m":123456789012345678901234567890}}`)
	case "changed":
		s.send(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
		s.text(r.ID, "changed")
	case "pid":
		s.text(r.ID, strconv.Itoa(os.Getpid()))
	case "env":
		s.text(r.ID, strings.Join(os.Environ(), "\n"))
	case "secret":
		s.text(r.ID, "the token is hunter22secret")
	default:
		s.text(r.ID, string(r.Params))
	}
	if s.mode == "oneshot" {
		os.Exit(0)
	}
}

func (s *rawServer) text(id json.RawMessage, text string) {
	b, err := json.Marshal(text)
	if err != nil {
		os.Exit(1)
	}
	s.answer(id, `{"content":[{"type":"text","text":`+string(b)+`}]}`)
}

func (s *rawServer) answer(id json.RawMessage, result string) {
	s.send(`{"jsonrpc":"2.0","id":%s,"result":%s}`, id, result)
}

func (s *rawServer) send(format string, a ...any) { fmt.Fprintf(s.out, format+"\n", a...) }

const badTools = `{"tools":[
	{"name":"good","inputSchema":{"type":"object","properties":{"a":{"$ref":"#/$defs/n"}},"$defs":{"n":{"type":"number","maximum":9007199254740993}}}},
	{"name":"none"},
	{"name":"null","inputSchema":null},
	{"name":"text","inputSchema":"string"},
	{"name":"array","inputSchema":{"type":"array"}},
	{"name":"untyped","inputSchema":{}},
	{"name":"wrong","inputSchema":{"type":"object","properties":{"a":{"type":17}}}},
	{"name":"remote","inputSchema":{"type":"object","properties":{"a":{"$ref":"https://192.0.2.1/schema.json"}}}},
	{"name":"lost ref","inputSchema":{"type":"object","properties":{"a":{"$ref":"#/$defs/none"}}}},
	{"name":"output","inputSchema":{"type":"object"},"outputSchema":{"$ref":"#/$defs/none"}},
	{"name":17,"inputSchema":{"type":"object"}},
	null,
	{"name":"a.b","inputSchema":{"type":"object"}},
	{"name":"a b","inputSchema":{"type":"object"}},
	{"name":"same","inputSchema":{"type":"object"}},
	{"name":"same","inputSchema":{"type":"object"}},
	{"name":"a tool whose name is much longer than any provider of models allows a name to be","inputSchema":{"type":"object"}}
]}`
